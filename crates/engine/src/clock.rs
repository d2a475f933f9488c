//! The engine's clock, and waiting for an event.

use std::time::{Duration, Instant};

use tokio::sync::Notify;

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

/// Waits until `ready` returns a value. Notifications of `changed` must follow every change that makes
/// it do so.
pub(crate) async fn wait_for<T>(changed: &Notify, ready: impl Fn() -> Option<T>) -> T {
    loop {
        let notified = changed.notified();
        if let Some(value) = ready() {
            return value;
        }
        notified.await;
    }
}
