//! The owner of a process: attach, acknowledge, detach.

use std::sync::Arc;

use outpost_journal::Seq;

use super::{Process, Watcher};
use crate::Delivery;

impl Process {
    /// Sets the owner, which has received everything up to `cursor`, or continues at the
    /// last owner's cursor. Passes the cursor to `start` before the first notification. The
    /// caller notifies the watcher about existing events.
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
        // An advanced cursor may open the window or complete the delivery.
        self.shared.room.notify_one();
        self.shared.delivered.notify_waiters();
    }

    /// Retains output for an owner that has not attached yet.
    pub(crate) fn wait_for_owner(&self) {
        self.log().journal.attach(Seq::START);
    }

    /// Detaches the owner. With acked delivery its cursor is kept.
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

    /// Gives up the owner for good.
    pub(crate) fn abandon(&self) {
        self.detach(Delivery::Push);
    }

    /// Stops eviction until [`Process::release`], after a resume.
    pub(crate) fn hold(&self) {
        self.log().journal.hold();
    }

    /// Allows eviction again.
    pub fn release(&self) {
        self.log().journal.release();
        self.shared.room.notify_one();
    }

    /// Waits until the owner has acknowledged the close.
    pub(crate) async fn delivered(&self) {
        loop {
            let delivered = self.shared.delivered.notified();
            if self.log().journal.is_delivered() {
                return;
            }
            delivered.await;
        }
    }

    /// Advances the owner's cursor.
    pub fn advance(&self, cursor: Seq) {
        let mut log = self.log();
        let was_full = !log.journal.has_room();
        log.journal.advance(cursor);
        let room = was_full && log.journal.has_room();
        let delivered = log.journal.is_delivered();
        drop(log);
        if room {
            self.shared.room.notify_one();
        }
        if delivered {
            self.shared.delivered.notify_waiters();
        }
    }

    /// Discards the retained output.
    pub(crate) fn forget_output(&self) {
        self.log().journal.forget_output();
    }
}
