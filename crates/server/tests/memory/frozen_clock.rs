//! A paused clock that does not auto-advance while the runtime is idle: real processes take
//! real time, and no virtual time must pass meanwhile.

use std::sync::mpsc;

/// Stops the paused clock from advancing by itself until dropped. `tokio::time::advance`
/// still moves it.
pub(crate) struct FrozenClock {
    /// Dropping it ends the blocking task.
    _release: mpsc::SyncSender<()>,
}

impl FrozenClock {
    pub(crate) fn new() -> Self {
        let (release, released) = mpsc::sync_channel(1);
        // Tokio does not auto-advance paused time while a blocking task runs.
        tokio::task::spawn_blocking(move || {
            // Nothing is ever sent.
            let _ = released.recv();
        });
        FrozenClock { _release: release }
    }
}
