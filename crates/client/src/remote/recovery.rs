//! What is to be done about a lost connection. Plain data: whoever owns it tells
//! what has happened and when, and does what it says.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Tells connections apart; each one has a higher number than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LineNumber(pub(super) u64);

/// Between two tries at most, and for a session that is still attached always.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const ATTACHED_PAUSE: Duration = Duration::from_millis(200);

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) reason: String,
    /// Somebody means it: a new connection wouldn't be welcome.
    pub(super) for_good: bool,
}

/// Why a try has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// There is no connection, or none any more.
    Unreachable { reason: String, for_good: bool },
    /// The server still takes the old connection for alive; ours is fine.
    StillAttached,
    /// The server has no room now; ours is fine.
    Overloaded,
    /// The server won't have us.
    Refused { reason: String },
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: it was about a connection that doesn't matter any more.
    Nothing,
    /// Make a new connection then.
    Dial { at: Instant },
    /// Ask again for the session on the same connection then.
    Resume { at: Instant },
    /// Catch up with every process.
    CatchUp,
    /// All is as before.
    GoOn,
    /// It is over.
    Fail { reason: Arc<str> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Connected(LineNumber),
    Recovering {
        lost: LineNumber,
        reason: String,
        deadline: Instant,
        tries: u32,
    },
    Failed(Arc<str>),
}

/// The state of a place's connection.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    within: Duration,
    /// There is a session to resume, and a way to reach it.
    resumable: bool,
    phase: Phase,
}

impl Recovery {
    pub(super) fn connected(line: LineNumber, within: Duration, resumable: bool) -> Self {
        Recovery {
            within,
            resumable,
            phase: Phase::Connected(line),
        }
    }

    /// A connection is lost. Only the current one counts.
    pub(super) fn lost(&mut self, line: LineNumber, loss: &Loss, now: Instant) -> Step {
        match &self.phase {
            Phase::Connected(current) if *current == line => {}
            _ => return Step::Nothing,
        }
        if loss.for_good || !self.resumable {
            return self.fail(loss.reason.clone());
        }
        self.phase = Phase::Recovering {
            lost: line,
            reason: loss.reason.clone(),
            deadline: now + self.within,
            tries: 0,
        };
        Step::Dial { at: now }
    }

    /// A try has failed.
    pub(super) fn failed(&mut self, trouble: &Trouble, now: Instant) -> Step {
        let Phase::Recovering {
            reason,
            deadline,
            tries,
            ..
        } = &mut self.phase
        else {
            return Step::Nothing;
        };
        let (words, for_good) = match trouble {
            Trouble::Unreachable { reason, for_good } => (reason.as_str(), *for_good),
            Trouble::StillAttached => {
                ("the session is still attached to the old connection", false)
            }
            Trouble::Overloaded => ("the server is overloaded", false),
            Trouble::Refused { reason } => (reason.as_str(), true),
        };
        if for_good {
            let reason = format!("{reason}; {words}");
            return self.fail(reason);
        }
        *tries += 1;
        let (at, step): (_, fn(Instant) -> Step) = match trouble {
            Trouble::StillAttached => (now + ATTACHED_PAUSE, |at| Step::Resume { at }),
            Trouble::Overloaded => (now + pause(*tries), |at| Step::Resume { at }),
            _ => (now + pause(*tries), |at| Step::Dial { at }),
        };
        if at >= *deadline {
            let within = self.within;
            let reason = format!("{reason}; no way back within {within:?}: {words}");
            return self.fail(reason);
        }
        step(at)
    }

    /// The session is resumed.
    pub(super) fn resumed(&mut self, now: Instant) -> Step {
        match self.deadline() {
            Some(deadline) if now < deadline => Step::CatchUp,
            Some(_) => self.timed_out(),
            None => Step::Nothing,
        }
    }

    /// Every process is caught up, on a new connection.
    pub(super) fn caught_up(&mut self, line: LineNumber, now: Instant) -> Step {
        match &self.phase {
            Phase::Recovering { lost, deadline, .. } if *lost < line => {
                if now >= *deadline {
                    return self.timed_out();
                }
                self.phase = Phase::Connected(line);
                Step::GoOn
            }
            _ => Step::Nothing,
        }
    }

    /// The deadline has passed while something was waited for.
    pub(super) fn timed_out(&mut self) -> Step {
        match &self.phase {
            Phase::Recovering { reason, .. } => {
                let within = self.within;
                let reason = format!("{reason}; no way back within {within:?}");
                self.fail(reason)
            }
            _ => Step::Nothing,
        }
    }

    /// When it is given up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Recovering { deadline, .. } => Some(deadline),
            _ => None,
        }
    }

    fn fail(&mut self, reason: String) -> Step {
        let reason: Arc<str> = reason.into();
        self.phase = Phase::Failed(Arc::clone(&reason));
        Step::Fail { reason }
    }
}

/// Doubles with every try; the first one comes at once.
fn pause(tries: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(10));
    doubled.min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(25);
    const FIRST: LineNumber = LineNumber(1);

    fn loss() -> Loss {
        Loss {
            reason: "it ended".to_owned(),
            for_good: false,
        }
    }

    fn unreachable() -> Trouble {
        Trouble::Unreachable {
            reason: "refused".to_owned(),
            for_good: false,
        }
    }

    #[test]
    fn only_the_current_connection_counts() {
        let now = Instant::now();
        let mut recovery = Recovery::connected(LineNumber(2), WITHIN, true);
        assert_eq!(recovery.lost(FIRST, &loss(), now), Step::Nothing);
        assert_eq!(recovery.failed(&unreachable(), now), Step::Nothing);
        assert_eq!(
            recovery.lost(LineNumber(2), &loss(), now),
            Step::Dial { at: now }
        );
        assert_eq!(recovery.lost(LineNumber(2), &loss(), now), Step::Nothing);
        assert_eq!(recovery.caught_up(LineNumber(2), now), Step::Nothing);
        assert_eq!(recovery.resumed(now), Step::CatchUp);
        assert_eq!(recovery.caught_up(LineNumber(5), now), Step::GoOn);
        assert_eq!(recovery.lost(LineNumber(4), &loss(), now), Step::Nothing);
    }

    #[test]
    fn tries_come_less_and_less_often_until_the_deadline() {
        let start = Instant::now();
        let mut now = start;
        let mut recovery = Recovery::connected(FIRST, WITHIN, true);
        recovery.lost(FIRST, &loss(), now);
        let mut tries = 0;
        let reason = loop {
            match recovery.failed(&unreachable(), now) {
                Step::Dial { at } => {
                    assert!(at > now && at - now <= LONGEST_PAUSE);
                    now = at;
                    tries += 1;
                }
                Step::Fail { reason } => break reason,
                other => panic!("{other:?}"),
            }
        };
        assert!((20..60).contains(&tries), "{tries}");
        assert!(now < start + WITHIN && now > start + WITHIN - 2 * LONGEST_PAUSE);
        assert_eq!(&*reason, "it ended; no way back within 25s: refused");
        assert_eq!(recovery.resumed(now), Step::Nothing, "it is over");
    }

    #[test]
    fn what_is_meant_is_believed() {
        let now = Instant::now();
        let mut recovery = Recovery::connected(FIRST, WITHIN, false);
        let reason = "it ended".into();
        assert_eq!(recovery.lost(FIRST, &loss(), now), Step::Fail { reason });
        let mut recovery = Recovery::connected(FIRST, WITHIN, true);
        recovery.lost(FIRST, &loss(), now);
        let refused = Trouble::Refused {
            reason: "unknown session".to_owned(),
        };
        let reason = "it ended; unknown session".into();
        assert_eq!(recovery.failed(&refused, now), Step::Fail { reason });
        let mut recovery = Recovery::connected(FIRST, WITHIN, true);
        let taken = Loss {
            for_good: true,
            ..loss()
        };
        let step = recovery.lost(FIRST, &taken, now);
        assert!(matches!(step, Step::Fail { .. }));
    }

    #[test]
    fn a_session_that_is_still_attached_is_asked_for_on_the_same_connection() {
        let now = Instant::now();
        let mut recovery = Recovery::connected(FIRST, WITHIN, true);
        recovery.lost(FIRST, &loss(), now);
        let at = now + ATTACHED_PAUSE;
        assert_eq!(
            recovery.failed(&Trouble::StillAttached, now),
            Step::Resume { at }
        );
        let late = now + WITHIN - ATTACHED_PAUSE;
        let step = recovery.failed(&Trouble::StillAttached, late);
        assert!(matches!(step, Step::Fail { .. }), "{step:?}");
    }

    #[test]
    fn too_late_is_too_late_even_when_it_works() {
        let now = Instant::now();
        let mut recovery = Recovery::connected(FIRST, WITHIN, true);
        recovery.lost(FIRST, &loss(), now);
        let mut other = recovery.clone();
        assert!(matches!(recovery.resumed(now + WITHIN), Step::Fail { .. }));
        assert_eq!(other.resumed(now), Step::CatchUp);
        let step = other.caught_up(LineNumber(2), now + WITHIN);
        assert!(matches!(step, Step::Fail { .. }), "{step:?}");
    }
}
