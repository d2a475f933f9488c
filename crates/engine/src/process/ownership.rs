//! Whom a process writes for: owners come, see, acknowledge and go.

use std::sync::Arc;

use outpost_journal::Seq;

use super::{Process, Watcher};
use crate::Delivery;

impl Process {
    /// Makes somebody the owner, who has seen everything up to `cursor`, or
    /// goes on where the last owner stopped; `start` hears where that is,
    /// before the first news. The caller announces what is there already.
    pub(crate) fn attach(
        &self,
        cursor: Option<Seq>,
        watcher: &Arc<dyn Watcher>,
        start: impl FnOnce(Seq),
    ) {
        let mut log = self.log();
        let cursor = cursor.unwrap_or_else(|| log.journal.owner().cursor());
        log.journal.attach(cursor);
        log.watcher = Some(Arc::downgrade(watcher));
        start(log.journal.owner().cursor());
        drop(log);
        // A cursor that has moved on may have made room, or have seen the end.
        self.shared.room.notify_one();
        self.shared.delivered.notify_waiters();
    }

    /// An owner is waited for before it has ever attached.
    pub(crate) fn wait_for_owner(&self) {
        self.log().journal.attach(Seq::START);
    }

    /// The owner's connection is gone. One that acknowledges is waited for all
    /// the same.
    pub(crate) fn detach(&self, delivery: Delivery) {
        let mut log = self.log();
        log.watcher = None;
        if delivery == Delivery::Push {
            log.journal.detach();
        }
        drop(log);
        self.shared.room.notify_one();
        self.shared.delivered.notify_waiters();
    }

    /// Nobody will ever own it again.
    pub(crate) fn abandon(&self) {
        self.detach(Delivery::Push);
    }

    /// Keeps everything until [`Process::release`]: an owner has come back.
    pub(crate) fn hold(&self) {
        self.log().journal.hold();
    }

    /// The owner has had its chance to read.
    pub fn release(&self) {
        self.log().journal.release();
        self.shared.room.notify_one();
    }

    /// Waits until an owner that acknowledges has seen the close.
    pub(crate) async fn delivered(&self) {
        loop {
            let delivered = self.shared.delivered.notified();
            if self.log().journal.is_delivered() {
                return;
            }
            delivered.await;
        }
    }

    /// The owner has seen everything up to `cursor`.
    pub fn advance(&self, cursor: Seq) {
        let mut log = self.log();
        let held_back = !log.journal.has_room();
        log.journal.advance(cursor);
        let room = held_back && log.journal.has_room();
        let delivered = log.journal.is_delivered();
        drop(log);
        if room {
            self.shared.room.notify_one();
        }
        if delivered {
            self.shared.delivered.notify_waiters();
        }
    }

    /// Keeps nothing of its output any more.
    pub(crate) fn forget_output(&self) {
        self.log().journal.forget_output();
    }
}
