//! Closed processes stay readable for a while.

use std::sync::{MutexGuard, PoisonError};

use tokio::time::sleep_until;

use super::Engine;
use crate::{Process, Session, clock, shelf::Shelf};

impl Engine {
    /// A closed process stays readable for a while.
    pub(super) fn shelve(&self, session: Session, process: Process) {
        let bytes = process.retained_bytes();
        self.shelf().put(clock::now(), (session, process), bytes);
        self.shared.shelved.notify_one();
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf<(Session, Process)>> {
        self.shared
            .shelf
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The janitor: takes closed processes off the shelf when their time is over.
pub(super) async fn keep_the_shelf(engine: Engine) {
    loop {
        let gone = engine.shelf().clear(clock::now());
        if !gone.is_empty() {
            engine.check_out_leftovers();
        }
        let any = !gone.is_empty();
        for (session, process) in gone {
            session.forget(&process);
        }
        if any {
            engine.end_forgotten_sessions();
        }
        let next = engine.shelf().next_expiry();
        tokio::select! {
            () = engine.shared.shelved.notified() => {}
            () = engine.shared.ending.cancelled() => return,
            () = async {
                match next {
                    Some(at) => sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            } => {}
        }
    }
}
