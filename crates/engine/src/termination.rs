//! The termination of a process: SIGTERM, a grace period, then SIGKILL. Pure: time is passed in.

use std::time::{Duration, Instant};

use crate::clock;

/// How far the termination of a process has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Termination {
    /// Not requested.
    #[default]
    Idle,
    /// The process was asked to terminate and is killed when the grace period is over.
    Asked { kill_at: Instant },
    /// The process tree was killed, and is killed again until it is gone: a kill may fail, and a
    /// process may appear while others are killed.
    Killed { again_at: Instant, pause: Duration },
}

/// The pause before the first repetition of a kill; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause between two kills.
const MAX_PAUSE: Duration = Duration::from_secs(8);

/// The next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Nothing,
    /// Ask the process to terminate: hang-up and terminate.
    Ask,
    /// Kill the whole process tree.
    Kill,
}

impl Termination {
    /// Requests termination with this grace period. A repeated request can only shorten it; without a
    /// grace period it kills again, because processes may be left of a tree that was killed.
    pub(crate) fn request(&mut self, now: Instant, grace: Duration) -> Step {
        let kill_at = clock::after(now, grace);
        match *self {
            _ if grace.is_zero() => self.kill(now, FIRST_PAUSE),
            Termination::Killed { .. } => Step::Nothing,
            Termination::Idle => {
                *self = Termination::Asked { kill_at };
                Step::Ask
            }
            Termination::Asked { kill_at: earlier } => {
                *self = Termination::Asked {
                    kill_at: earlier.min(kill_at),
                };
                Step::Nothing
            }
        }
    }

    fn kill(&mut self, now: Instant, pause: Duration) -> Step {
        let again_at = clock::after(now, pause);
        *self = Termination::Killed { again_at, pause };
        Step::Kill
    }

    /// Escalates if the grace period is over, and repeats a kill when that is due.
    pub(crate) fn tick(&mut self, now: Instant) -> Step {
        match *self {
            Termination::Asked { kill_at } if now >= kill_at => self.kill(now, FIRST_PAUSE),
            Termination::Killed { again_at, pause } if now >= again_at => {
                self.kill(now, (pause * 2).min(MAX_PAUSE))
            }
            _ => Step::Nothing,
        }
    }

    /// Whether termination was never requested.
    pub(crate) fn is_idle(&self) -> bool {
        *self == Termination::Idle
    }

    /// Whether the tree was killed.
    pub(crate) fn is_killed(&self) -> bool {
        matches!(self, Termination::Killed { .. })
    }

    /// When to call [`Termination::tick`] next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match *self {
            Termination::Asked { kill_at } => Some(kill_at),
            Termination::Killed { again_at, .. } => Some(again_at),
            Termination::Idle => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn kills_after_grace_period() {
        let now = Instant::now();
        let mut termination = Termination::default();
        assert_eq!(termination.request(now, 2 * SECOND), Step::Ask);
        assert_eq!(termination.tick(now + SECOND), Step::Nothing);
        assert_eq!(termination.tick(now + 2 * SECOND), Step::Kill);
        assert_eq!(termination.tick(now + 2 * SECOND), Step::Nothing);
        let late = termination.request(now + 3 * SECOND, SECOND);
        assert_eq!(late, Step::Nothing);
    }

    #[test]
    fn kill_is_repeated_with_growing_pauses() {
        let mut now = Instant::now();
        let mut termination = Termination::default();
        assert_eq!(termination.request(now, Duration::ZERO), Step::Kill);
        let mut pause = FIRST_PAUSE;
        for _ in 0..10 {
            assert_eq!(termination.deadline(), Some(now + pause));
            now += pause;
            assert_eq!(termination.tick(now - FIRST_PAUSE / 2), Step::Nothing);
            assert_eq!(termination.tick(now), Step::Kill);
            pause = (pause * 2).min(MAX_PAUSE);
        }
        assert_eq!(pause, MAX_PAUSE);
    }

    #[test]
    fn repeated_request_only_shortens_grace_period() {
        let now = Instant::now();
        let mut termination = Termination::default();
        termination.request(now, 2 * SECOND);
        assert_eq!(termination.request(now, 9 * SECOND), Step::Nothing);
        assert_eq!(termination.deadline(), Some(now + 2 * SECOND));
        assert_eq!(termination.request(now, SECOND), Step::Nothing);
        assert_eq!(termination.deadline(), Some(now + SECOND));
        assert_eq!(termination.request(now, Duration::ZERO), Step::Kill);
        assert!(termination.is_killed());
        assert_eq!(termination.request(now, Duration::ZERO), Step::Kill);
        assert_eq!(termination.deadline(), Some(now + FIRST_PAUSE));
    }
}
