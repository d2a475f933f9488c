//! Idle detection: counts active connections and processes, for `--exit-when-idle`.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

/// Counts active users of the server. Clones share one counter.
#[derive(Clone, Debug)]
pub struct ActivityTracker {
    active: Arc<watch::Sender<usize>>,
}

/// Keeps the server counted as active until dropped.
#[derive(Debug)]
pub struct ActivityGuard {
    tracker: ActivityTracker,
}

impl ActivityTracker {
    pub(crate) fn new() -> Self {
        ActivityTracker {
            active: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Registers one active user.
    #[must_use]
    pub fn track(&self) -> ActivityGuard {
        self.active.send_modify(|count| *count += 1);
        ActivityGuard {
            tracker: self.clone(),
        }
    }

    /// Waits until the counter has been zero for `timeout` without interruption.
    ///
    /// Cancel safe. The timer restarts whenever a guard is created.
    pub async fn idle_for(&self, timeout: Duration) {
        let mut active = self.active.subscribe();
        loop {
            // Cannot fail: `self` holds the sender.
            let _ = active.wait_for(|count| *count == 0).await;
            tokio::select! {
                () = tokio::time::sleep(timeout) => return,
                _ = active.changed() => {}
            }
        }
    }
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        self.tracker.active.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(60);

    async fn time_until_idle(tracker: &ActivityTracker) -> Duration {
        let start = Instant::now();
        tracker.idle_for(TIMEOUT).await;
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn idles_after_timeout_when_never_used() {
        assert_eq!(time_until_idle(&ActivityTracker::new()).await, TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn timer_starts_when_last_guard_drops() {
        let tracker = ActivityTracker::new();
        let (short, long) = (tracker.track(), tracker.track());
        tokio::spawn(async move {
            // sleep: time is paused here
            sleep(TIMEOUT).await;
            drop(short);
            // sleep: time is paused here
            sleep(TIMEOUT).await;
            drop(long);
        });
        assert_eq!(time_until_idle(&tracker).await, 3 * TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn short_activity_restarts_timer() {
        let tracker = ActivityTracker::new();
        let other = tracker.clone();
        tokio::spawn(async move {
            // sleep: time is paused here
            sleep(TIMEOUT / 2).await;
            drop(other.track());
        });
        assert_eq!(time_until_idle(&tracker).await, TIMEOUT / 2 + TIMEOUT);
    }
}
