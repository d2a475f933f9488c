//! What is done with what the server says by itself.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use outpost_journal::Seq;
use outpost_protocol::{
    AckParams, Ending, HTTP_BODY_DELTA, Method, PROCESS_ACK, PROCESS_CLOSED, PROCESS_EXITED,
    ProcessClosed, ProcessOutput, ReadParams, ReadResult, code, parse_params,
};
use serde_json::value::RawValue;
use tokio::time::{sleep, sleep_until};

use super::{
    core::{Core, lock},
    line::Line,
    puzzle::Heard,
    tracked::{Progress, Tracked, is_sane},
    unattended::LetGo,
};
use crate::{Error, event::stream_of};

/// How long a server is left alone that has too much to do, or nothing to say.
pub(super) const BUSY_PAUSE: Duration = Duration::from_millis(200);

/// How many pages in a row may bring nothing of what was heard of.
const MAX_FRUITLESS: u32 = 3;

impl Core {
    /// A process has written something.
    pub(super) fn output(self: &Arc<Self>, line: &Line, output: ProcessOutput<'_>) {
        let heard = Heard::Output(stream_of(output.stream), output.chunk.into_owned().into());
        self.heard(line, &output.process_id, Seq(output.seq), heard);
    }

    /// Anything else has happened.
    pub(super) fn notification(
        self: &Arc<Self>,
        line: &Line,
        method: &str,
        params: Option<&RawValue>,
    ) {
        let understood = match method {
            PROCESS_EXITED => parse_params::<Ending>(params).map(|ending| {
                let heard = Heard::Exited {
                    code: ending.exit_code,
                    sandbox_denied: ending.sandbox_denied,
                };
                self.heard(line, &ending.process_id, Seq(ending.seq), heard);
            }),
            PROCESS_CLOSED => parse_params::<ProcessClosed>(params).map(|closed| {
                self.heard(line, &closed.process_id, Seq(closed.seq), Heard::Closed);
            }),
            HTTP_BODY_DELTA => parse_params(params).map(|delta| line.bodies.heard(delta)),
            _ => Ok(()),
        };
        if let Err(error) = understood {
            tracing::warn!(%error, method, "a notification makes no sense");
        }
    }

    fn heard(self: &Arc<Self>, line: &Line, id: &str, seq: Seq, heard: Heard) {
        if !self.is_current(line) {
            return;
        }
        if !is_sane(seq) {
            return tracing::warn!(process = id, %seq, "an event has a number beyond all counting");
        }
        let closed = heard == Heard::Closed;
        match self.find(id) {
            Some(tracked) => match tracked.heard(seq, heard, self.is_acked()) {
                Ok(progress) => self.progress(&tracked, &progress),
                Err(error) => self.fail_one(&tracked, error),
            },
            None if closed && self.strays().closed(id) => self.acknowledge(id, seq, 0, true),
            None if self.strays().knows(id) => {
                // It may go on without us, and must not wait for us.
                let bytes = match &heard {
                    Heard::Output(_, bytes) => bytes.len(),
                    Heard::Exited { .. } | Heard::Closed => 0,
                };
                self.acknowledge(id, seq, bytes, false);
            }
            None => self.heard_of_somebody(id, seq, closed),
        }
    }

    /// A session that was resumed may have processes that nobody here has
    /// attached to, or not yet. They are kept waiting for a while.
    fn heard_of_somebody(&self, id: &str, seq: Seq, closed: bool) {
        if !self.is_acked() {
            return;
        }
        let (until, before) = {
            let mut unattended = lock(&self.unattended);
            let before = unattended.next();
            (unattended.heard(id, seq, closed, now()), before)
        };
        match until {
            Some(until) if before.is_none_or(|before| until < before) => {
                self.acks_owed.notify_one();
            }
            Some(_) => {}
            None => self.acknowledge_now(id, seq),
        }
    }

    /// Nobody has attached to them in time: they go on without us.
    fn let_go(&self) {
        let over = lock(&self.unattended).over(now());
        for LetGo { id, last, closed } in over {
            if !closed {
                tracing::debug!(process = id, "nobody attaches to it; it is not waited for");
                self.strays().add(&id);
            }
            self.acknowledge(&id, last, self.options.limits.ack_bytes, closed);
        }
    }

    /// Does what has to be done about what was heard or read of a process.
    pub(super) fn progress(self: &Arc<Self>, tracked: &Arc<Tracked>, progress: &Progress) {
        if let Some((seq, bytes)) = progress.ackable {
            self.acknowledge(tracked.id(), seq, bytes, progress.closed);
        }
        if progress.closed {
            self.forget(tracked);
        } else if progress.wants {
            self.read_what_is_missing(tracked);
        }
    }

    fn acknowledge(&self, id: &str, seq: Seq, bytes: usize, closed: bool) {
        if !self.is_acked() {
            return;
        }
        let now = now();
        let (at, before) = {
            let mut acks = lock(&self.acks);
            let before = acks.next();
            (acks.owe(id, seq, bytes, closed, now), before)
        };
        let sent = at <= now && self.send_acks(now);
        if !sent && before.is_none_or(|before| at < before) {
            self.acks_owed.notify_one();
        }
    }

    /// The server may be waiting for this.
    pub(super) fn acknowledge_now(&self, id: &str, seq: Seq) {
        let bytes = self.options.limits.ack_bytes;
        self.acknowledge(id, seq, bytes, false);
    }

    /// Sends what is due, if there is a connection.
    fn send_acks(&self, now: Instant) -> bool {
        let Some(line) = self.line_now() else {
            return false;
        };
        for (process_id, seq) in lock(&self.acks).due(now) {
            let params = AckParams {
                process_id,
                seq: seq.0,
            };
            line.notify(PROCESS_ACK, &params);
        }
        true
    }

    /// The task that acknowledges what nobody was in a hurry about.
    pub(super) async fn acknowledge_later(self: Arc<Self>) {
        loop {
            let owed = lock(&self.acks).next();
            let next = owed.into_iter().chain(lock(&self.unattended).next()).min();
            let due = async {
                match next {
                    Some(at) => sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => {}
                () = self.acks_owed.notified() => continue,
                () = self.ending.cancelled() => return,
            }
            self.let_go();
            if !self.send_acks(now()) {
                // What isn't connected will be, or will never be again.
                tokio::select! {
                    line = self.line() => if line.is_err() { return },
                    () = self.ending.cancelled() => return,
                }
            }
        }
    }

    /// Reads what notifications have left out, unless somebody is at it.
    pub(super) fn read_what_is_missing(self: &Arc<Self>, tracked: &Arc<Tracked>) {
        if !tracked.reading.swap(true, Ordering::AcqRel) {
            let core = Arc::clone(self);
            let tracked = Arc::clone(tracked);
            self.tasks.spawn(async move {
                tokio::select! {
                    () = core.read_until_complete(&tracked) => {}
                    () = core.ending.cancelled() => {}
                }
            });
        }
    }

    async fn read_until_complete(self: &Arc<Self>, tracked: &Arc<Tracked>) {
        let mut fruitless = 0;
        loop {
            let Some(after) = tracked.to_read() else {
                tracked.reading.store(false, Ordering::Release);
                // Something may have gone missing between the two, or room made.
                if tracked.to_read().is_none() || tracked.reading.swap(true, Ordering::AcqRel) {
                    return;
                }
                continue;
            };
            let params = read_after(tracked.id(), after);
            match self.again(Method::ProcessRead, &params).await {
                Err(Error::Refused { code, .. }) if code == code::OVERLOADED => {
                    sleep(BUSY_PAUSE).await;
                }
                page => {
                    self.read(tracked, page);
                    if tracked.to_read() == Some(after) {
                        fruitless += 1;
                        if fruitless == MAX_FRUITLESS {
                            self.fail_one(tracked, tracked.never_comes());
                        }
                        sleep(BUSY_PAUSE).await;
                    } else {
                        fruitless = 0;
                    }
                }
            }
        }
    }

    /// Puts what was read into its place.
    pub(super) fn read(
        self: &Arc<Self>,
        tracked: &Arc<Tracked>,
        page: Result<ReadResult<Vec<u8>>, Error>,
    ) {
        let outcome = match page {
            Ok(page) => {
                let failure = page.failure.clone();
                tracked.page(page).and_then(|progress| match failure {
                    Some(message) => Err(Error::ProcessFailed {
                        id: tracked.id().to_owned(),
                        message,
                    }),
                    None => Ok(progress),
                })
            }
            Err(error) => match tracked.unreadable() {
                (progress, true) => Ok(progress),
                (_, false) => Err(error),
            },
        };
        match outcome {
            Ok(progress) => {
                tracked.arrived();
                if let Some((seq, bytes)) = progress.ackable {
                    self.acknowledge(tracked.id(), seq, bytes, progress.closed);
                }
                if progress.closed {
                    self.forget(tracked);
                } else if progress.wants {
                    self.read_what_is_missing(tracked);
                }
            }
            Err(error) => self.fail_one(tracked, error),
        }
    }
}

/// All that is retained behind a number; with no limit, since only then a page
/// tells where the exit stands.
pub(super) fn read_after(id: &str, after: Seq) -> ReadParams {
    ReadParams {
        process_id: id.to_owned(),
        after_seq: Some(after.0),
        max_bytes: None,
        wait_ms: Some(0),
        session_id: None,
    }
}

/// The runtime's time, which tests can stop.
pub(super) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DialError, Dialer, RemoteOptions, Transport};

    struct Nowhere;

    impl Dialer for Nowhere {
        fn dial(
            &self,
        ) -> std::pin::Pin<Box<dyn Future<Output = Result<Transport, DialError>> + Send + '_>>
        {
            Box::pin(async { Err(DialError::Spent) })
        }

        fn name(&self) -> String {
            "nowhere".to_owned()
        }
    }

    #[test]
    fn only_the_newest_connection_is_listened_to() {
        let core = Arc::new(Core::new(Arc::new(Nowhere), RemoteOptions::default()));
        let tracked = Tracked::new(&core, "p");
        core.follow(&tracked);
        let (old, new) = (core.next_line(), core.next_line());
        let params = r#"{"processId":"p","seq":1,"exitCode":3,"sandboxDenied":false}"#;
        let params = RawValue::from_string(params.to_owned()).unwrap();
        core.notification(&old, PROCESS_EXITED, Some(&params));
        assert!(tracked.record.exit().is_none());
        core.notification(&new, PROCESS_EXITED, Some(&params));
        assert_eq!(tracked.record.exit().map(|exit| exit.code), Some(3));
    }
}
