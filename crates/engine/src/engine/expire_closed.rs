//! Retains closed processes for a while and forgets them afterwards.

use tokio::time::sleep_until;

use super::Engine;
use crate::{Process, Session, clock};

impl Engine {
    /// Keeps a closed process readable until its retention is over.
    pub(super) fn retain_closed(&self, session: Session, process: Process) {
        let bytes = process.retained_bytes();
        let mut closed = self.shared.closed.lock();
        closed.push(clock::now(), (session, process), bytes);
        drop(closed);
        self.shared.closed_added.notify_one();
    }
}

/// Forgets closed processes when they expire, until the engine shuts down.
pub(super) async fn expire_closed(engine: Engine) {
    loop {
        let expired = engine.shared.closed.lock().take_expired(clock::now());
        if !expired.is_empty() {
            engine.remove_without_leftovers();
            for (session, process) in expired {
                session.forget(&process);
            }
            engine.end_forgotten_sessions();
        }
        let next = engine.shared.closed.lock().next_expiry();
        tokio::select! {
            () = engine.shared.closed_added.notified() => {}
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
