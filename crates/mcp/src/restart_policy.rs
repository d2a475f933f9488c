//! Decides whether and when a server is restarted.

use std::time::Duration;

use tokio::time::Instant;

use crate::Limits;

/// Counts the consecutive failures of one server.
#[derive(Debug)]
pub(crate) struct RestartPolicy {
    limits: Limits,
    consecutive_failures: u32,
    was_ready: bool,
    ready_since: Option<Instant>,
}

impl RestartPolicy {
    pub(crate) fn new(limits: &Limits) -> Self {
        RestartPolicy {
            limits: limits.clone(),
            consecutive_failures: 0,
            was_ready: false,
            ready_since: None,
        }
    }

    /// Records that the server is ready.
    pub(crate) fn on_ready(&mut self, now: Instant) {
        self.was_ready = true;
        self.ready_since = Some(now);
    }

    /// Records that the server ended or failed to start. Returns the delay before the next
    /// start, or `None` to give up.
    ///
    /// A server that was never ready isn't restarted: it would fail for the same reason.
    pub(crate) fn on_failure(&mut self, now: Instant) -> Option<Duration> {
        if !self.was_ready {
            return None;
        }
        let ready_since = self.ready_since.take();
        let healthy_after = self.limits.healthy_after;
        let was_healthy = ready_since.is_some_and(|since| now - since >= healthy_after);
        if self.consecutive_failures == 0 || was_healthy {
            self.consecutive_failures = 1;
            return (self.limits.max_restarts > 0).then_some(Duration::ZERO);
        }
        self.consecutive_failures += 1;
        if self.consecutive_failures > self.limits.max_restarts {
            return None;
        }
        // The first delay follows the second failure.
        let doublings = (self.consecutive_failures - 2).min(16);
        let delay = self.limits.restart_delay * 2u32.pow(doublings);
        Some(delay.min(self.limits.restart_delay_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn never_ready_server_is_not_restarted() {
        let mut policy = RestartPolicy::new(&Limits::default());
        assert_eq!(policy.on_failure(Instant::now()), None);
    }

    #[test]
    fn delays_double_until_restarts_are_exhausted() {
        let mut policy = RestartPolicy::new(&Limits::default());
        let now = Instant::now();
        policy.on_ready(now);
        let delays: Vec<_> = std::iter::from_fn(|| policy.on_failure(now)).collect();
        assert_eq!(
            delays,
            [Duration::ZERO, SECOND, SECOND * 2, SECOND * 4, SECOND * 8]
        );
    }

    #[test]
    fn failing_restarts_are_exhausted_after_long_uptime() {
        let mut policy = RestartPolicy::new(&Limits::default());
        let mut now = Instant::now();
        policy.on_ready(now);
        now += SECOND * 3600;
        let delays = std::iter::from_fn(|| {
            let delay = policy.on_failure(now)?;
            // A failing start takes time as well.
            now += delay + SECOND * 30;
            Some(delay)
        });
        assert_eq!(
            delays.take(100).collect::<Vec<_>>(),
            [Duration::ZERO, SECOND, SECOND * 2, SECOND * 4, SECOND * 8]
        );
    }

    #[test]
    fn healthy_uptime_resets_the_counter() {
        let mut policy = RestartPolicy::new(&Limits::default());
        let now = Instant::now();
        policy.on_ready(now);
        assert_eq!(policy.on_failure(now), Some(Duration::ZERO));
        policy.on_ready(now);
        assert_eq!(policy.on_failure(now + SECOND), Some(SECOND));
        policy.on_ready(now);
        assert_eq!(policy.on_failure(now + SECOND * 60), Some(Duration::ZERO));
    }
}
