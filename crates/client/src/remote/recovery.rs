//! Decisions about replacing a lost connection. Pure: the [`Reconnector`](super::reconnector)
//! reports failed attempts with the current time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Bounds of the exponential backoff between attempts.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// Delay before a session is requested again that is still attached to another connection.
pub(super) const ATTACHED_DELAY: Duration = Duration::from_millis(200);

/// Why a connection ended, or could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LossReason {
    pub(super) reason: String,
    /// Whether a new connection would be pointless.
    pub(super) permanent: bool,
}

impl LossReason {
    pub(super) fn temporary(reason: impl Into<String>) -> Self {
        LossReason {
            reason: reason.into(),
            permanent: false,
        }
    }

    pub(super) fn permanent(reason: impl Into<String>) -> Self {
        LossReason {
            reason: reason.into(),
            permanent: true,
        }
    }
}

/// Why an attempt to reconnect failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AttemptError {
    /// No connection could be made, it was lost, or the server rejected the session.
    Lost(LossReason),
    /// The server considers the old connection alive. The new one remains usable.
    StillAttached,
    /// The server has no capacity now. The new connection remains usable.
    Overloaded,
    /// The deadline has passed.
    TimedOut,
}

/// The next attempt of the reconnector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// Open a new connection at this time.
    Dial { at: Instant },
    /// Request the session at this time, on the same connection.
    Resume { at: Instant },
}

/// The replacement of one lost connection.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    reason: String,
    timeout: Duration,
    /// When the recovery gives up.
    pub(super) deadline: Instant,
    attempts: u32,
}

impl Recovery {
    /// Begins to replace a connection, or returns the reason to give up. `resumable` is whether
    /// there is a session to resume and a way to reach the server again.
    pub(super) fn begin(
        loss: &LossReason,
        timeout: Duration,
        resumable: bool,
        now: Instant,
    ) -> Result<Self, Arc<str>> {
        if loss.permanent || !resumable {
            return Err(loss.reason.as_str().into());
        }
        Ok(Recovery {
            reason: loss.reason.clone(),
            timeout,
            deadline: now + timeout,
            attempts: 0,
        })
    }

    /// Checks that the deadline has not passed.
    pub(super) fn check_deadline(&self, now: Instant) -> Result<(), AttemptError> {
        if now < self.deadline {
            Ok(())
        } else {
            Err(AttemptError::TimedOut)
        }
    }

    /// Reports a failed attempt. Returns the next one, or the reason to give up.
    pub(super) fn failed(&mut self, error: &AttemptError, now: Instant) -> Result<Retry, Arc<str>> {
        let Recovery {
            reason, timeout, ..
        } = self;
        self.attempts += 1;
        let after_backoff = now + backoff(self.attempts);
        let (text, at, same_connection) = match error {
            AttemptError::Lost(loss) if loss.permanent => {
                return Err(format!("{reason}; {}", loss.reason).into());
            }
            AttemptError::TimedOut => {
                return Err(format!("{reason}; could not reconnect within {timeout:?}").into());
            }
            AttemptError::Lost(loss) => (loss.reason.as_str(), after_backoff, false),
            AttemptError::StillAttached => (
                "the session is still attached to the old connection",
                now + ATTACHED_DELAY,
                true,
            ),
            AttemptError::Overloaded => ("the server is overloaded", after_backoff, true),
        };
        if at >= self.deadline {
            let reason = format!("{reason}; could not reconnect within {timeout:?}: {text}");
            return Err(reason.into());
        }
        Ok(if same_connection {
            Retry::Resume { at }
        } else {
            Retry::Dial { at }
        })
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

    fn begin(now: Instant) -> Recovery {
        Recovery::begin(&LossReason::temporary("it ended"), TIMEOUT, true, now).unwrap()
    }

    fn unreachable() -> AttemptError {
        AttemptError::Lost(LossReason::temporary("refused"))
    }

    #[test]
    fn attempts_back_off_until_the_deadline() {
        let start = Instant::now();
        let mut now = start;
        let mut recovery = begin(now);
        let mut attempts = 0;
        let reason = loop {
            match recovery.failed(&unreachable(), now) {
                Ok(Retry::Dial { at }) => {
                    assert!(at > now && at - now <= MAX_BACKOFF);
                    now = at;
                    attempts += 1;
                }
                Err(reason) => break reason,
                other => panic!("{other:?}"),
            }
        };
        assert!((20..60).contains(&attempts), "{attempts}");
        assert!(now < start + TIMEOUT && now > start + TIMEOUT - 2 * MAX_BACKOFF);
        assert_eq!(
            &*reason,
            "it ended; could not reconnect within 25s: refused"
        );
    }

    #[test]
    fn permanent_failures_are_not_retried() {
        let now = Instant::now();
        let not_resumable =
            Recovery::begin(&LossReason::temporary("it ended"), TIMEOUT, false, now);
        assert_eq!(not_resumable.unwrap_err(), "it ended".into());
        let rejected = AttemptError::Lost(LossReason::permanent("unknown session"));
        assert_eq!(
            begin(now).failed(&rejected, now),
            Err("it ended; unknown session".into())
        );
        let taken_over = Recovery::begin(&LossReason::permanent("it ended"), TIMEOUT, true, now);
        assert_eq!(taken_over.unwrap_err(), "it ended".into());
    }

    #[test]
    fn attached_session_is_requested_again_on_the_same_connection() {
        let now = Instant::now();
        let mut recovery = begin(now);
        let at = now + ATTACHED_DELAY;
        assert_eq!(
            recovery.failed(&AttemptError::StillAttached, now),
            Ok(Retry::Resume { at })
        );
        let late = now + TIMEOUT - ATTACHED_DELAY;
        let retry = recovery.failed(&AttemptError::StillAttached, late);
        assert!(retry.is_err(), "{retry:?}");
    }

    #[test]
    fn success_after_the_deadline_fails() {
        let now = Instant::now();
        let mut recovery = begin(now);
        assert_eq!(recovery.check_deadline(now), Ok(()));
        let late = now + TIMEOUT;
        let error = recovery.check_deadline(late).unwrap_err();
        assert_eq!(
            recovery.failed(&error, late),
            Err("it ended; could not reconnect within 25s".into())
        );
    }
}
