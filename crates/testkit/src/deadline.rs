//! Deadlines of tests. They are generous: tests wait for events, and a deadline only ends a test
//! that fails.

use std::time::{Duration, Instant};

/// Bounds the wait for one event.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Bounds the wait for a foreign interpreter, such as Python or Node.js, which loads its packages before
/// it responds. On a busy machine that takes longer than anything of ours.
pub const INTERPRETER_DEADLINE: Duration = Duration::from_secs(60);

/// The poll interval for state that has no event.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Awaits `future`, and panics if it takes longer than [`DEADLINE`].
pub async fn expect_soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    expect_within(DEADLINE, what, future).await
}

/// Awaits `future`, which includes the start of an interpreter, and panics if it takes longer than
/// [`INTERPRETER_DEADLINE`].
pub async fn expect_interpreter<T>(what: &str, future: impl Future<Output = T>) -> T {
    expect_within(INTERPRETER_DEADLINE, what, future).await
}

async fn expect_within<T>(limit: Duration, what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(limit, future).await {
        Ok(value) => value,
        Err(_) => panic!("timed out waiting for {what}"),
    }
}

/// Polls `look` until it returns a value, and panics after [`DEADLINE`]. For state without events,
/// such as files and the process table.
pub async fn poll_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        // sleep: the polled state has no event
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Polls `look` for at most `timeout`. Blocking, for use in `Drop`.
pub fn poll_for<T>(timeout: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + timeout;
    loop {
        let found = look();
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        // sleep: the polled state has no event
        std::thread::sleep(POLL_INTERVAL);
    }
}
