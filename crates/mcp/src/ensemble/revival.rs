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
    was_ready: bool,
    /// Since when it can be used, as long as it can.
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
            was_ready: false,
            ready_since: None,
        }
    }

    /// It can be used.
    pub(super) fn ready(&mut self, now: Instant) {
        self.was_ready = true;
        self.ready_since = Some(now);
    }

    /// It has ended, or could not be started again. Says how long to wait
    /// before the next try; nothing if there is none. One that was never ready
    /// isn't tried again: it would fail for the same reason.
    pub(super) fn died(&mut self, now: Instant) -> Option<Duration> {
        if !self.was_ready {
            return None;
        }
        // A time of health counts for the death that ended it, and for no other.
        let since = self.ready_since.take();
        let was_well = since.is_some_and(|since| now.duration_since(since) >= self.well_after);
        if self.deaths == 0 || was_well {
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
    fn one_that_cannot_be_started_again_is_given_up_however_well_it_was() {
        let mut revival = Revival::new(&Limits::default());
        let mut now = Instant::now();
        revival.ready(now);
        now += SECOND * 3600;
        let pauses = std::iter::from_fn(|| {
            let pause = revival.died(now)?;
            // A start that fails takes its time too.
            now += pause + SECOND * 30;
            Some(pause)
        });
        assert_eq!(
            pauses.take(100).collect::<Vec<_>>(),
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
