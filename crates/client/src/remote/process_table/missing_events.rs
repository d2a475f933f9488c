//! Reads events that are missing between notifications.

use std::sync::{Arc, atomic::Ordering};

use outpost_protocol::{Method, ReadResult, code};
use tokio::time::sleep;

use super::{OVERLOAD_DELAY, ProcessTable, RemoteProcess, read_after};
use crate::Error;

/// Number of consecutive reads without an announced event before the event counts as lost.
const MAX_EMPTY_READS: u32 = 3;

impl ProcessTable {
    /// Starts a task that reads events missing between notifications, unless one runs.
    pub(in crate::remote) fn read_missing(self: &Arc<Self>, process: &Arc<RemoteProcess>) {
        if !process.reading.swap(true, Ordering::AcqRel) {
            let table = Arc::clone(self);
            let process = Arc::clone(process);
            self.session.tasks.spawn(async move {
                tokio::select! {
                    () = table.read_until_complete(&process) => {}
                    () = table.session.closing.cancelled() => {}
                }
            });
        }
    }

    async fn read_until_complete(self: &Arc<Self>, process: &Arc<RemoteProcess>) {
        let mut empty_reads = 0;
        loop {
            let Some(after) = process.next_read() else {
                process.reading.store(false, Ordering::Release);
                // Check again: an event may have gone missing before the flag was cleared.
                if process.next_read().is_none() || process.reading.swap(true, Ordering::AcqRel) {
                    return;
                }
                continue;
            };
            let params = read_after(process.id(), after);
            let page = self.session.call_retrying(Method::ProcessRead, &params);
            match page.await {
                Err(Error::Rejected { code, .. }) if code == code::OVERLOADED => {
                    sleep(OVERLOAD_DELAY).await;
                }
                page => {
                    self.apply_page(process, page);
                    if process.next_read() == Some(after) {
                        empty_reads += 1;
                        if empty_reads == MAX_EMPTY_READS {
                            self.fail_process(process, process.missing_error());
                        }
                        sleep(OVERLOAD_DELAY).await;
                    } else {
                        empty_reads = 0;
                    }
                }
            }
        }
    }

    /// Handles the response to a read.
    pub(in crate::remote) fn apply_page(
        self: &Arc<Self>,
        process: &Arc<RemoteProcess>,
        page: Result<ReadResult<Vec<u8>>, Error>,
    ) {
        let outcome = match page {
            Ok(page) => {
                let failure = page.failure.clone();
                process
                    .receive_page(page)
                    .and_then(|progress| match failure {
                        Some(message) => Err(process.failed(message)),
                        None => Ok(progress),
                    })
            }
            Err(error) => process.complete_without_read().ok_or(error),
        };
        match outcome {
            Ok(progress) => {
                process.mark_started();
                self.apply(process, &progress);
            }
            Err(error) => self.fail_process(process, error),
        }
    }
}
