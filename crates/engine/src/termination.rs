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
    /// The process tree was killed.
    Killed,
}

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
    /// Requests termination with this grace period. A repeated request can only shorten it.
    pub(crate) fn request(&mut self, now: Instant, grace: Duration) -> Step {
        let kill_at = clock::after(now, grace);
        match *self {
            Termination::Killed => Step::Nothing,
            _ if grace.is_zero() => {
                *self = Termination::Killed;
                Step::Kill
            }
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

    /// Escalates if the grace period is over.
    pub(crate) fn tick(&mut self, now: Instant) -> Step {
        match *self {
            Termination::Asked { kill_at } if now >= kill_at => {
                *self = Termination::Killed;
                Step::Kill
            }
            _ => Step::Nothing,
        }
    }

    /// Whether termination was never requested.
    pub(crate) fn is_idle(&self) -> bool {
        *self == Termination::Idle
    }

    /// When to call [`Termination::tick`] next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match *self {
            Termination::Asked { kill_at } => Some(kill_at),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn kills_once_after_grace_period() {
        let now = Instant::now();
        let mut termination = Termination::default();
        assert_eq!(termination.request(now, 2 * SECOND), Step::Ask);
        assert_eq!(termination.tick(now + SECOND), Step::Nothing);
        assert_eq!(termination.tick(now + 2 * SECOND), Step::Kill);
        assert_eq!(termination.tick(now + 3 * SECOND), Step::Nothing);
        let late = termination.request(now + 3 * SECOND, SECOND);
        assert_eq!(late, Step::Nothing);
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
        assert_eq!(termination.deadline(), None);
    }
}
