//! The engine's clock.

use std::time::{Duration, Instant};

/// The maximum timeout: a hundred years. Much longer ones would overflow an
/// `Instant`.
const MAX_TIMEOUT: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The time of the tokio runtime, which tests can pause and advance.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Adds a timeout, limited to `MAX_TIMEOUT`.
pub(crate) fn after(now: Instant, timeout: Duration) -> Instant {
    now + timeout.min(MAX_TIMEOUT)
}

/// Sleeps until the deadline, or forever without one.
pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
