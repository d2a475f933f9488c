//! How a process is ended: asked first, made to later.

use std::time::{Duration, Instant};

use crate::clock;

/// How far the end of a process has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ladder {
    /// Nobody wants it to end.
    #[default]
    Idle,
    /// It was asked to end, and will be killed when the grace is over.
    Asked { kill_at: Instant },
    /// It was killed.
    Killed,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing new.
    Nothing,
    /// Ask it to end: hangup and terminate.
    Ask,
    /// Kill the whole tree.
    Kill,
}

impl Ladder {
    /// Somebody wants the process to end, with so much grace. Who asks again
    /// can only shorten it.
    pub(crate) fn end(&mut self, now: Instant, grace: Duration) -> Step {
        let kill_at = clock::after(now, grace);
        match *self {
            Ladder::Killed => Step::Nothing,
            _ if grace.is_zero() => {
                *self = Ladder::Killed;
                Step::Kill
            }
            Ladder::Idle => {
                *self = Ladder::Asked { kill_at };
                Step::Ask
            }
            Ladder::Asked { kill_at: earlier } => {
                *self = Ladder::Asked {
                    kill_at: earlier.min(kill_at),
                };
                Step::Nothing
            }
        }
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now: Instant) -> Step {
        match *self {
            Ladder::Asked { kill_at } if now >= kill_at => {
                *self = Ladder::Killed;
                Step::Kill
            }
            _ => Step::Nothing,
        }
    }

    /// Whether nobody wants the process to end.
    pub(crate) fn is_idle(&self) -> bool {
        *self == Ladder::Idle
    }

    /// When to look again.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match *self {
            Ladder::Asked { kill_at } => Some(kill_at),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn grace_then_kill_once() {
        let now = Instant::now();
        let mut ladder = Ladder::default();
        assert_eq!(ladder.end(now, 2 * SECOND), Step::Ask);
        assert_eq!(ladder.tick(now + SECOND), Step::Nothing);
        assert_eq!(ladder.tick(now + 2 * SECOND), Step::Kill);
        assert_eq!(ladder.tick(now + 3 * SECOND), Step::Nothing);
        assert_eq!(ladder.end(now + 3 * SECOND, SECOND), Step::Nothing);
    }

    #[test]
    fn asking_again_only_shortens() {
        let now = Instant::now();
        let mut ladder = Ladder::default();
        ladder.end(now, 2 * SECOND);
        assert_eq!(ladder.end(now, 9 * SECOND), Step::Nothing);
        assert_eq!(ladder.deadline(), Some(now + 2 * SECOND));
        assert_eq!(ladder.end(now, SECOND), Step::Nothing);
        assert_eq!(ladder.deadline(), Some(now + SECOND));
        assert_eq!(ladder.end(now, Duration::ZERO), Step::Kill);
        assert_eq!(ladder.deadline(), None);
    }
}
