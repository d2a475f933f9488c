//! What moves the events of one process from the engine into its record.

use std::sync::Arc;

use outpost_engine::{Epoch, Process, Seq, Session, Watcher};
use tokio::sync::Notify;

use crate::{
    Error,
    record::{Record, Source},
};

/// How much is taken over in one go.
const TURN_BYTES: usize = 256 * 1024;

/// Wakes the pump: there is news, or room for them.
#[derive(Clone, Debug, Default)]
pub(super) struct Bell(Arc<Notify>);

impl Watcher for Bell {
    fn news(&self) {
        self.0.notify_one();
    }
}

impl Source for Bell {
    fn room(&self) {
        self.0.notify_one();
    }
}

/// Runs until the process is closed or the place is. The engine's log waits for
/// the pump, and the pump for the record, so a process is held back by who reads
/// it and nothing is kept twice.
pub(super) struct Pump {
    pub(super) session: Session,
    pub(super) epoch: Epoch,
    pub(super) process: Process,
    pub(super) record: Arc<Record>,
    pub(super) bell: Bell,
    pub(super) cursor: Seq,
}

impl Pump {
    pub(super) async fn run(mut self) {
        let watcher: Arc<dyn Watcher> = Arc::new(self.bell.clone());
        let cursor = Some(self.cursor);
        self.session
            .attach(self.epoch, &self.process, cursor, &watcher, |_| {});
        let mut events = Vec::new();
        while !self.record.is_over() {
            if self.record.has_room() {
                self.process
                    .events_after(self.cursor, TURN_BYTES, &mut events);
            }
            let Some(last) = events.last() else {
                self.bell.0.notified().await;
                continue;
            };
            let first = events[0].seq();
            let last = last.seq();
            if first != self.cursor.next() {
                self.record.fail(Error::Gap {
                    id: self.record.id().to_owned(),
                    from: self.cursor.next().0,
                    to: first.previous().0,
                });
                return;
            }
            self.record.publish(events.drain(..).map(Into::into));
            self.cursor = last;
            self.session.advance(self.epoch, &self.process, last);
            // A flood must not keep its own reader from running.
            tokio::task::consume_budget().await;
        }
    }
}
