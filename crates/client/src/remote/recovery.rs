//! State machine for replacing a lost connection. Pure: the [`Reconnector`](super::reconnector)
//! reports events with the current time and performs the returned steps.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Identifies a connection. Later connections have higher ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionId(pub(super) u64);

/// Bounds of the exponential backoff between attempts.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// Delay before a session is requested again that is still attached to the old connection.
const ATTACHED_DELAY: Duration = Duration::from_millis(200);

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) reason: String,
    /// Whether a new connection would be pointless.
    pub(super) permanent: bool,
}

/// Why an attempt to reconnect failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AttemptError {
    /// No connection could be made, or it was lost.
    Unreachable { reason: String, permanent: bool },
    /// The server considers the old connection alive. The new one remains usable.
    StillAttached,
    /// The server has no capacity now. The new connection remains usable.
    Overloaded,
    /// The server rejected the session.
    Rejected { reason: String },
}

/// The next step of the reconnector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Do nothing: the report was about an old connection.
    Ignore,
    /// Open a new connection at this time.
    Dial { at: Instant },
    /// Request the session at this time, on the same connection.
    Resume { at: Instant },
    /// Read the missed events of every process.
    CatchUp,
    /// Continue normally: the session is resumed.
    Finish,
    /// Give up.
    Fail { reason: Arc<str> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Connected(ConnectionId),
    Recovering {
        lost: ConnectionId,
        reason: String,
        deadline: Instant,
        attempts: u32,
    },
    Failed(Arc<str>),
}

/// State of an executor's connection.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    timeout: Duration,
    /// Whether there is a session to resume and a way to reach the server again.
    resumable: bool,
    phase: Phase,
}

impl Recovery {
    pub(super) fn connected(connection: ConnectionId, timeout: Duration, resumable: bool) -> Self {
        Recovery {
            timeout,
            resumable,
            phase: Phase::Connected(connection),
        }
    }

    /// Reports a lost connection. Ignored unless it is the current one.
    pub(super) fn lost(&mut self, connection: ConnectionId, loss: &Loss, now: Instant) -> Step {
        match &self.phase {
            Phase::Connected(current) if *current == connection => {}
            _ => return Step::Ignore,
        }
        if loss.permanent || !self.resumable {
            return self.fail(loss.reason.clone());
        }
        self.phase = Phase::Recovering {
            lost: connection,
            reason: loss.reason.clone(),
            deadline: now + self.timeout,
            attempts: 0,
        };
        Step::Dial { at: now }
    }

    /// Reports a failed attempt.
    pub(super) fn failed(&mut self, error: &AttemptError, now: Instant) -> Step {
        let Phase::Recovering {
            reason,
            deadline,
            attempts,
            ..
        } = &mut self.phase
        else {
            return Step::Ignore;
        };
        let (text, permanent) = match error {
            AttemptError::Unreachable { reason, permanent } => (reason.as_str(), *permanent),
            AttemptError::StillAttached => {
                ("the session is still attached to the old connection", false)
            }
            AttemptError::Overloaded => ("the server is overloaded", false),
            AttemptError::Rejected { reason } => (reason.as_str(), true),
        };
        if permanent {
            let reason = format!("{reason}; {text}");
            return self.fail(reason);
        }
        *attempts += 1;
        let (at, step): (_, fn(Instant) -> Step) = match error {
            AttemptError::StillAttached => (now + ATTACHED_DELAY, |at| Step::Resume { at }),
            AttemptError::Overloaded => (now + backoff(*attempts), |at| Step::Resume { at }),
            _ => (now + backoff(*attempts), |at| Step::Dial { at }),
        };
        if at >= *deadline {
            let timeout = self.timeout;
            let reason = format!("{reason}; could not reconnect within {timeout:?}: {text}");
            return self.fail(reason);
        }
        step(at)
    }

    /// Reports that the session is resumed.
    pub(super) fn resumed(&mut self, now: Instant) -> Step {
        match self.deadline() {
            Some(deadline) if now < deadline => Step::CatchUp,
            Some(_) => self.timed_out(),
            None => Step::Ignore,
        }
    }

    /// Reports that every process has caught up on a new connection.
    pub(super) fn caught_up(&mut self, connection: ConnectionId, now: Instant) -> Step {
        match &self.phase {
            Phase::Recovering { lost, deadline, .. } if *lost < connection => {
                if now >= *deadline {
                    return self.timed_out();
                }
                self.phase = Phase::Connected(connection);
                Step::Finish
            }
            _ => Step::Ignore,
        }
    }

    /// Reports that the deadline has passed.
    pub(super) fn timed_out(&mut self) -> Step {
        match &self.phase {
            Phase::Recovering { reason, .. } => {
                let timeout = self.timeout;
                let reason = format!("{reason}; could not reconnect within {timeout:?}");
                self.fail(reason)
            }
            _ => Step::Ignore,
        }
    }

    /// Returns when the recovery gives up.
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

/// Doubles with every attempt.
fn backoff(attempts: u32) -> Duration {
    let doubled = FIRST_BACKOFF.saturating_mul(1 << attempts.saturating_sub(1).min(10));
    doubled.min(MAX_BACKOFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(25);
    const FIRST: ConnectionId = ConnectionId(1);

    fn loss() -> Loss {
        Loss {
            reason: "it ended".to_owned(),
            permanent: false,
        }
    }

    fn unreachable() -> AttemptError {
        AttemptError::Unreachable {
            reason: "refused".to_owned(),
            permanent: false,
        }
    }

    #[test]
    fn reports_about_old_connections_are_ignored() {
        let now = Instant::now();
        let mut recovery = Recovery::connected(ConnectionId(2), TIMEOUT, true);
        assert_eq!(recovery.lost(FIRST, &loss(), now), Step::Ignore);
        assert_eq!(recovery.failed(&unreachable(), now), Step::Ignore);
        assert_eq!(
            recovery.lost(ConnectionId(2), &loss(), now),
            Step::Dial { at: now }
        );
        assert_eq!(recovery.lost(ConnectionId(2), &loss(), now), Step::Ignore);
        assert_eq!(recovery.caught_up(ConnectionId(2), now), Step::Ignore);
        assert_eq!(recovery.resumed(now), Step::CatchUp);
        assert_eq!(recovery.caught_up(ConnectionId(5), now), Step::Finish);
        assert_eq!(recovery.lost(ConnectionId(4), &loss(), now), Step::Ignore);
    }

    #[test]
    fn attempts_back_off_until_the_deadline() {
        let start = Instant::now();
        let mut now = start;
        let mut recovery = Recovery::connected(FIRST, TIMEOUT, true);
        recovery.lost(FIRST, &loss(), now);
        let mut attempts = 0;
        let reason = loop {
            match recovery.failed(&unreachable(), now) {
                Step::Dial { at } => {
                    assert!(at > now && at - now <= MAX_BACKOFF);
                    now = at;
                    attempts += 1;
                }
                Step::Fail { reason } => break reason,
                other => panic!("{other:?}"),
            }
        };
        assert!((20..60).contains(&attempts), "{attempts}");
        assert!(now < start + TIMEOUT && now > start + TIMEOUT - 2 * MAX_BACKOFF);
        assert_eq!(
            &*reason,
            "it ended; could not reconnect within 25s: refused"
        );
        assert_eq!(recovery.resumed(now), Step::Ignore, "already failed");
    }

    #[test]
    fn permanent_failures_are_not_retried() {
        let now = Instant::now();
        let mut recovery = Recovery::connected(FIRST, TIMEOUT, false);
        let reason = "it ended".into();
        assert_eq!(recovery.lost(FIRST, &loss(), now), Step::Fail { reason });
        let mut recovery = Recovery::connected(FIRST, TIMEOUT, true);
        recovery.lost(FIRST, &loss(), now);
        let refused = AttemptError::Rejected {
            reason: "unknown session".to_owned(),
        };
        let reason = "it ended; unknown session".into();
        assert_eq!(recovery.failed(&refused, now), Step::Fail { reason });
        let mut recovery = Recovery::connected(FIRST, TIMEOUT, true);
        let taken = Loss {
            permanent: true,
            ..loss()
        };
        let step = recovery.lost(FIRST, &taken, now);
        assert!(matches!(step, Step::Fail { .. }));
    }

    #[test]
    fn attached_session_is_requested_again_on_the_same_connection() {
        let now = Instant::now();
        let mut recovery = Recovery::connected(FIRST, TIMEOUT, true);
        recovery.lost(FIRST, &loss(), now);
        let at = now + ATTACHED_DELAY;
        assert_eq!(
            recovery.failed(&AttemptError::StillAttached, now),
            Step::Resume { at }
        );
        let late = now + TIMEOUT - ATTACHED_DELAY;
        let step = recovery.failed(&AttemptError::StillAttached, late);
        assert!(matches!(step, Step::Fail { .. }), "{step:?}");
    }

    #[test]
    fn success_after_the_deadline_fails() {
        let now = Instant::now();
        let mut recovery = Recovery::connected(FIRST, TIMEOUT, true);
        recovery.lost(FIRST, &loss(), now);
        let mut other = recovery.clone();
        assert!(matches!(recovery.resumed(now + TIMEOUT), Step::Fail { .. }));
        assert_eq!(other.resumed(now), Step::CatchUp);
        let step = other.caught_up(ConnectionId(2), now + TIMEOUT);
        assert!(matches!(step, Step::Fail { .. }), "{step:?}");
    }
}
