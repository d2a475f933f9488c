//! How long the peer of a connection has taken nothing of what is written to it.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Bytes that count as progress. A peer that takes less in the same time does not read.
const PROGRESS_BYTES: usize = 64 * 1024;

/// The progress of the current write of a connection.
#[derive(Debug, Default)]
pub(crate) struct WriteProgress {
    /// `None` while nothing is being written.
    current: Mutex<Option<CurrentWrite>>,
}

/// The last progress of a write, and the bytes written since.
#[derive(Debug)]
struct CurrentWrite {
    since: Instant,
    bytes: usize,
}

impl WriteProgress {
    /// Records a write, until the guard is dropped.
    pub(crate) fn begin(&self) -> WriteGuard<'_> {
        let since = Instant::now();
        *self.current.lock() = Some(CurrentWrite { since, bytes: 0 });
        WriteGuard(self)
    }

    /// Records that the transport has taken `bytes` of the write.
    pub(crate) fn advance(&self, bytes: usize) {
        if let Some(current) = &mut *self.current.lock() {
            current.bytes += bytes;
            if current.bytes >= PROGRESS_BYTES {
                (current.since, current.bytes) = (Instant::now(), 0);
            }
        }
    }

    /// Returns whether the current write has made no progress for `patience`.
    pub(crate) fn is_blocked(&self, patience: Duration) -> bool {
        let current = self.current.lock();
        (current.as_ref()).is_some_and(|current| current.since.elapsed() >= patience)
    }
}

/// A write that has begun. Ends on drop.
pub(crate) struct WriteGuard<'a>(&'a WriteProgress);

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        *self.0.current.lock() = None;
    }
}
