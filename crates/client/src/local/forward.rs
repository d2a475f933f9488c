//! Moves the events of one process from the engine's journal into the client's log.

use std::sync::Arc;

use outpost_engine::{Epoch, Process, Seq, Session, Watcher};
use tokio::sync::Notify;

use crate::{
    Error,
    process::{EventSource, ProcessLog},
};

/// The limit of one batch.
const BATCH_BYTES: usize = 256 * 1024;

/// Wakes the forwarder for new events, and for space in the log.
#[derive(Clone, Debug, Default)]
pub(super) struct Waker(Arc<Notify>);

impl Watcher for Waker {
    fn news(&self) {
        self.0.notify_one();
    }
}

impl EventSource for Waker {
    fn space_available(&self) {
        self.0.notify_one();
    }
}

/// Forwards events until the process or the executor is closed. It stops while the log is full, and
/// as the owner of the engine's journal it passes this backpressure on to the process.
pub(super) struct Forwarder {
    pub(super) session: Session,
    pub(super) epoch: Epoch,
    pub(super) process: Process,
    pub(super) log: Arc<ProcessLog>,
    pub(super) waker: Waker,
    pub(super) cursor: Seq,
}

impl Forwarder {
    pub(super) async fn run(mut self) {
        let watcher: Arc<dyn Watcher> = Arc::new(self.waker.clone());
        let cursor = Some(self.cursor);
        self.session
            .attach(self.epoch, &self.process, cursor, &watcher, |_| {});
        let mut events = Vec::new();
        while !self.log.is_ended() {
            if self.log.has_space() {
                self.process
                    .events_after(self.cursor, BATCH_BYTES, &mut events);
            }
            let Some(last) = events.last() else {
                self.waker.0.notified().await;
                continue;
            };
            let first = events[0].seq();
            let last = last.seq();
            if first != self.cursor.next() {
                self.log.fail(Error::Gap {
                    id: self.log.id().to_owned(),
                    from: self.cursor.next().0,
                    to: first.previous().0,
                });
                return;
            }
            self.log.append(events.drain(..).map(Into::into));
            self.cursor = last;
            self.session.advance(self.epoch, &self.process, last);
            // Give the reader a turn during a flood of output.
            tokio::task::consume_budget().await;
        }
    }
}
