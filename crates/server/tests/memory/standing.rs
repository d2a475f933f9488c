//! A paused clock that stands still even when nobody has anything to do: real
//! processes take real time, and meanwhile no other time must pass.

use std::sync::mpsc;

/// Holds the clock until it is dropped. Only `tokio::time::advance` moves it.
pub(crate) struct Standing {
    /// Nothing is sent. Dropping it lets the thread go.
    _release: mpsc::SyncSender<()>,
}

impl Standing {
    pub(crate) fn still() -> Self {
        let (release, released) = mpsc::sync_channel(1);
        // The runtime's clock doesn't run ahead while something blocks.
        tokio::task::spawn_blocking(move || {
            // It is only ever dropped.
            let _ = released.recv();
        });
        Standing { _release: release }
    }
}
