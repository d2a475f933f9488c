//! What time it is.

use std::time::{Duration, Instant};

/// Nobody waits longer than that, whatever was asked for: a hundred years. Much
/// later there is no telling the time.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The runtime's time, which tests can stop and move; everything that decides
/// gets it from here, everything that waits waits for the same one.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The time so much later.
pub(crate) fn after(now: Instant, span: Duration) -> Instant {
    now + span.min(LONGEST)
}
