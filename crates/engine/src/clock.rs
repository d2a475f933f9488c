//! What time it is.

use std::time::Instant;

/// The runtime's time, which tests can stop and move; everything that decides
/// gets it from here, everything that waits waits for the same one.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
