//! How long a test waits before it counts as failed.

use std::time::{Duration, Instant};

/// For an event that comes at once unless something is broken or the machine is very busy.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// How often something is looked at that tells nobody of its changes.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits for what a future gives, but no longer than [`PATIENCE`].
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for {what}"),
    }
}

/// Looks again and again until there is something to see; for what has no event, like files and
/// the table of processes.
pub async fn seen<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(Instant::now() < deadline, "never saw {what}");
        // sleep: what is looked at here has no event
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// As [`seen`], for where nothing can be awaited, and without a panic.
pub(crate) fn seen_within<T>(within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + within;
    loop {
        let seen = look();
        if seen.is_some() || Instant::now() >= deadline {
            return seen;
        }
        // sleep: what is looked at here has no event
        std::thread::sleep(LOOK_EVERY);
    }
}
