//! A followed process: assembles its events, and reads those that no notification carried.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use outpost_journal::{Event, Seq};
use outpost_protocol::{Method, ReadParams, ReadResult, code};
use parking_lot::Mutex;
use tokio::{sync::watch, time::sleep};

use super::{
    OVERLOAD_DELAY, ProcessTable,
    assembler::{EventAssembler, LostRange},
};
use crate::{
    Error,
    process::{ProcessLog, output_len},
};

/// Number of windows that unread output may take before the process fails. A server should be
/// one window ahead at most, but its window may be larger than ours.
const MAX_WINDOWS: usize = 64;

/// Number of consecutive reads without an announced event before the event counts as lost.
const MAX_EMPTY_READS: u32 = 3;

/// A process on the server whose events are assembled here.
pub(crate) struct RemoteProcess {
    pub(crate) log: Arc<ProcessLog>,
    assembler: Mutex<EventAssembler>,
    /// Whether a task reads missing events.
    reading: AtomicBool,
    /// The last event that may be acknowledged: everything appended while the log had space.
    ackable: AtomicU64,
    /// Whether this client started the process, as opposed to attaching to it.
    pub(crate) started_here: bool,
    /// Whether the process exists. `None` until the start or the first read has a response.
    started: watch::Sender<Option<Result<(), Error>>>,
}

/// The result of received events.
#[derive(Debug, Default)]
pub(super) struct ReceiveOutcome {
    /// The event to acknowledge, and the number of new bytes.
    pub(super) ackable: Option<(Seq, usize)>,
    pub(super) closed: bool,
    /// Whether events are missing that must be read.
    pub(super) incomplete: bool,
}

impl RemoteProcess {
    /// Creates a process that is about to be started.
    pub(super) fn starting(table: &Arc<ProcessTable>, id: &str) -> Arc<Self> {
        Self::new(table, id, Seq::START, true)
    }

    /// Creates a process that already exists. The first read tells which events after `after`
    /// are retained.
    pub(super) fn attached(table: &Arc<ProcessTable>, id: &str, after: Seq) -> Arc<Self> {
        Self::new(table, id, after, false)
    }

    fn new(table: &Arc<ProcessTable>, id: &str, after: Seq, started_here: bool) -> Arc<Self> {
        let limits = table.session.log_limits();
        let assembler = if started_here {
            EventAssembler::new(after, limits.window_bytes)
        } else {
            EventAssembler::attached(after, limits.window_bytes)
        };
        Arc::new_cyclic(|process| {
            let (table, process) = (Arc::downgrade(table), Weak::clone(process));
            let space_available = move || {
                if let (Some(table), Some(process)) = (table.upgrade(), process.upgrade()) {
                    table.space_available(&process);
                }
            };
            let log = ProcessLog::new(id.to_owned(), limits, after, space_available);
            RemoteProcess {
                log: Arc::new(log),
                assembler: Mutex::new(assembler),
                reading: AtomicBool::new(false),
                ackable: AtomicU64::new(after.0),
                started_here,
                started: watch::Sender::new(None),
            }
        })
    }

    pub(crate) fn id(&self) -> &str {
        self.log.id()
    }

    /// Records whether the process exists: its start was accepted, or a read returned events.
    pub(super) fn set_started(&self, result: Result<(), Error>) {
        self.started.send_if_modified(|started| {
            let pending = started.is_none();
            started.get_or_insert(result);
            pending
        });
    }

    pub(super) fn fail(&self, error: Error) {
        self.log.fail(error.clone());
        self.set_started(Err(error));
    }

    /// Whether it is unknown whether the process exists.
    pub(super) fn is_pending(&self) -> bool {
        self.started.borrow().is_none()
    }

    /// Waits until it is known whether the process exists.
    pub(crate) async fn wait_started(&self) -> Result<(), Error> {
        let mut started = self.started.subscribe();
        let known = started.wait_for(Option::is_some).await;
        known.map_or(Ok(()), |known| known.clone().unwrap_or(Ok(())))
    }

    /// Whether the process is terminated with its last handle: it was started here and is not
    /// detached.
    pub(super) fn ends_with_handle(&self) -> bool {
        match self.log.handle() {
            Some(handle) => !handle.is_detached(),
            // Without a handle, it was terminated already or is detached.
            None => self.started_here && self.is_pending(),
        }
    }

    /// Handles a notification. With `acked` delivery, output is always accepted: a correct server
    /// sends no more than its window. A server that exceeds ours many times fails the process.
    pub(super) fn receive(
        &self,
        event: Event,
        incomplete: bool,
        acked: bool,
    ) -> Result<ReceiveOutcome, Error> {
        let mut assembler = self.assembler.lock();
        if acked && self.log.exceeds_windows(MAX_WINDOWS) {
            return Err(self.failed("the server does not wait for acknowledgements".to_owned()));
        }
        let has_space = acked || self.log.has_space();
        let mut events = Vec::new();
        assembler.insert(event, incomplete, has_space, &mut events);
        Ok(self.append(&assembler, events, has_space))
    }

    /// Handles the response to a read of missing events.
    pub(super) fn receive_page(&self, page: ReadResult<Vec<u8>>) -> Result<ReceiveOutcome, Error> {
        let numbers = page.chunks.iter().map(|chunk| chunk.seq);
        if !numbers
            .chain([page.next_seq])
            .all(|seq| is_valid_seq(Seq(seq)))
        {
            return Err(self.failed("the server sent an event number out of range".to_owned()));
        }
        let mut assembler = self.assembler.lock();
        let first_page = assembler.awaits_first_page;
        let mut events = Vec::new();
        let outcome = assembler.insert_page(page, &mut events);
        if first_page {
            let first = Seq(assembler.next.0 - events.len() as u64);
            let exit = assembler.earlier_exit;
            self.log.restart_after(first.previous(), exit);
            self.ackable.store(first.previous().0, Ordering::Release);
        }
        let progress = self.append(&assembler, events, true);
        match outcome {
            Ok(()) => Ok(progress),
            Err(LostRange { from, to }) => Err(Error::Gap {
                id: self.id().to_owned(),
                from: from.0,
                to: to.0,
            }),
        }
    }

    /// Handles a failed read. Returns `None` if events are missing that only a read can supply.
    pub(super) fn complete_without_read(&self) -> Option<ReceiveOutcome> {
        let mut assembler = self.assembler.lock();
        let mut events = Vec::new();
        let complete = assembler.accept_incomplete_exit(&mut events);
        let progress = self.append(&assembler, events, true);
        complete.then_some(progress)
    }

    fn append(
        &self,
        assembler: &EventAssembler,
        events: Vec<Event>,
        has_space: bool,
    ) -> ReceiveOutcome {
        let mut progress = ReceiveOutcome {
            closed: assembler.closed,
            incomplete: has_space && assembler.missing_after().is_some(),
            ackable: None,
        };
        if !events.is_empty() {
            let bytes = events.iter().map(output_len).sum();
            if self.log.append(events) || progress.closed {
                let last = assembler.next.previous();
                self.ackable.store(last.0, Ordering::Release);
                progress.ackable = Some((last, bytes));
            }
        }
        progress
    }

    /// Returns where to read from now, if events are missing and the log has space for them.
    pub(super) fn next_read(&self) -> Option<Seq> {
        let after = self.assembler.lock().missing_after()?;
        (!self.log.is_ended() && self.log.has_space()).then_some(after)
    }

    /// The error for events that the server has announced but does not return.
    pub(super) fn missing_error(&self) -> Error {
        let assembler = self.assembler.lock();
        Error::Gap {
            id: self.id().to_owned(),
            from: assembler.next.0,
            to: assembler.highest.max(assembler.next).0,
        }
    }

    pub(super) fn failed(&self, message: String) -> Error {
        Error::ProcessFailed {
            id: self.id().to_owned(),
            message,
        }
    }

    /// Returns the last appended event.
    pub(crate) fn last_seq(&self) -> Seq {
        self.assembler.lock().next.previous()
    }

    /// Returns the event to resume after with `acked` delivery. The server repeats later events
    /// that were already appended; the assembler drops them.
    pub(super) fn ackable(&self) -> Seq {
        Seq(self.ackable.load(Ordering::Acquire))
    }

    /// Makes everything that was appended ackable, because the log has space again.
    fn ack_all(&self) -> Seq {
        let last = self.last_seq();
        self.ackable.store(last.0, Ordering::Release);
        last
    }
}

impl ProcessTable {
    /// Acknowledges or reads more when the log of a process has space again.
    fn space_available(self: &Arc<Self>, process: &Arc<RemoteProcess>) {
        if self.session.is_acked() {
            let last = process.ack_all();
            self.acknowledge_now(process.id(), last);
        } else if process.assembler.lock().missing_after().is_some() {
            self.read_missing(process);
        }
    }

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
                process.set_started(Ok(()));
                self.apply(process, &progress);
            }
            Err(error) => self.fail_process(process, error),
        }
    }
}

/// Requests all retained events after `after`. Without a byte limit, because only then the page
/// tells the position of the exit.
pub(in crate::remote) fn read_after(id: &str, after: Seq) -> ReadParams {
    ReadParams {
        process_id: id.to_owned(),
        after_seq: Some(after.0),
        max_bytes: None,
        wait_ms: Some(0),
        session_id: None,
    }
}

/// Whether an event number is plausible.
pub(super) fn is_valid_seq(seq: Seq) -> bool {
    seq.0 <= u64::MAX / 2
}
