//! Notices when this program did not run: it was stopped by a signal or a debugger, frozen with its
//! cgroup, or its machine was. Pure: time is passed in.

use std::time::{Duration, Instant};

/// The interval of [`SuspensionMeter::tick`].
pub(crate) const TICK: Duration = Duration::from_secs(1);
/// A gap between ticks from which the program counts as stopped. Shorter gaps are delays of a busy
/// machine.
const MAX_GAP: Duration = Duration::from_secs(2);

/// Measures the time that the program did not run, from the gaps between ticks. Without ticks it counts as
/// running.
#[derive(Debug, Default)]
pub(crate) struct SuspensionMeter {
    last_tick: Option<Instant>,
    stopped: Duration,
    /// When the last stop was noticed.
    noticed: Option<Instant>,
}

impl SuspensionMeter {
    /// Shows that the program runs. To be called every [`TICK`].
    pub(crate) fn tick(&mut self, now: Instant) {
        self.notice(now);
        self.last_tick = Some(now);
    }

    /// The time by a clock that stands still while the program is stopped. It is right even if a timer is
    /// served before the next tick.
    pub(crate) fn running_time(&mut self, now: Instant) -> Instant {
        self.notice(now);
        now - self.stopped
    }

    /// Whether the program was stopped and has run again for less than `span`.
    pub(crate) fn was_stopped_within(&mut self, span: Duration, now: Instant) -> bool {
        self.notice(now);
        self.noticed.is_some_and(|noticed| now - noticed < span)
    }

    fn notice(&mut self, now: Instant) {
        if let Some(last) = self.last_tick
            && now.saturating_duration_since(last) > MAX_GAP
        {
            // It ran for a tick at most before it was stopped.
            self.stopped += now - last - TICK;
            self.last_tick = Some(now);
            self.noticed = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn time_between_late_ticks_does_not_count() {
        let start = Instant::now();
        let mut meter = SuspensionMeter::default();
        for seconds in [0, 1, 2] {
            let now = start + seconds * SECOND;
            meter.tick(now);
            assert_eq!(meter.running_time(now), now);
        }
        // Stopped from 2.5 to 42.5. A timer comes first, then the late tick.
        let now = start + Duration::from_millis(42_500);
        assert!(!meter.was_stopped_within(60 * SECOND, start + 3 * SECOND));
        assert_eq!(meter.running_time(now), start + 3 * SECOND);
        meter.tick(now);
        assert_eq!(meter.running_time(now), start + 3 * SECOND);
        let later = now + SECOND;
        meter.tick(later);
        assert_eq!(meter.running_time(later), start + 4 * SECOND);
        assert!(meter.was_stopped_within(2 * SECOND, later));
        assert!(!meter.was_stopped_within(SECOND, later));
    }

    #[test]
    fn delays_count_as_running() {
        let start = Instant::now();
        let mut meter = SuspensionMeter::default();
        meter.tick(start);
        let late = start + MAX_GAP;
        meter.tick(late);
        assert_eq!(meter.running_time(late), late);
    }

    #[test]
    fn without_ticks_all_time_counts() {
        let mut meter = SuspensionMeter::default();
        let now = Instant::now();
        assert_eq!(meter.running_time(now), now);
        let later = now + 1000 * SECOND;
        assert_eq!(meter.running_time(later), later);
        assert!(!meter.was_stopped_within(SECOND, later));
    }
}
