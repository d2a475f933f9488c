//! Whether and when a server that has ended is started again.

use std::time::Duration;

use tokio::time::Instant;

use crate::Limits;

/// Counts the deaths of one server.
#[derive(Debug)]
pub(super) struct Revival {
    pause: Duration,
    pause_max: Duration,
    well_after: Duration,
    most: u32,
    /// In a row, without a time of health between them.
    deaths: u32,
    ready_since: Option<Instant>,
}

impl Revival {
    pub(super) fn new(limits: &Limits) -> Self {
        Revival {
            pause: limits.revival_pause,
            pause_max: limits.revival_pause_max,
            well_after: limits.well_after,
            most: limits.revivals,
            deaths: 0,
            ready_since: None,
        }
    }

    /// It can be used.
    pub(super) fn ready(&mut self, now: Instant) {
        self.ready_since = Some(now);
    }

    /// It has ended, or could not be started again. Says how long to wait
    /// before the next try; nothing if there is none. One that was never ready
    /// isn't tried again: it would fail for the same reason.
    pub(super) fn died(&mut self, now: Instant) -> Option<Duration> {
        let since = self.ready_since?;
        if self.deaths == 0 || now.duration_since(since) >= self.well_after {
            self.deaths = 1;
            return (self.most > 0).then_some(Duration::ZERO);
        }
        self.deaths += 1;
        if self.deaths > self.most {
            return None;
        }
        // The second death is the first to be waited after.
        let doublings = (self.deaths - 2).min(16);
        Some((self.pause * 2u32.pow(doublings)).min(self.pause_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn one_that_was_never_ready_stays_where_it_is() {
        let mut revival = Revival::new(&Limits::default());
        assert_eq!(revival.died(Instant::now()), None);
    }

    #[test]
    fn pauses_grow_until_it_is_given_up() {
        let mut revival = Revival::new(&Limits::default());
        let now = Instant::now();
        revival.ready(now);
        let pauses: Vec<_> = std::iter::from_fn(|| revival.died(now)).collect();
        assert_eq!(
            pauses,
            [Duration::ZERO, SECOND, SECOND * 2, SECOND * 4, SECOND * 8]
        );
    }

    #[test]
    fn a_time_of_health_forgives_everything() {
        let mut revival = Revival::new(&Limits::default());
        let now = Instant::now();
        revival.ready(now);
        assert_eq!(revival.died(now), Some(Duration::ZERO));
        revival.ready(now);
        assert_eq!(revival.died(now + SECOND), Some(SECOND));
        revival.ready(now);
        assert_eq!(revival.died(now + SECOND * 60), Some(Duration::ZERO));
    }
}
