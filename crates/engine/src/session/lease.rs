//! The lifetime of a session. Pure: time is passed in.

use std::time::{Duration, Instant};

use crate::clock;

/// Identifies one attachment of a session. A replaced connection must not detach its
/// successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch(u64);

/// How long a detached session lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// This long.
    For(Duration),
    /// Until it is closed.
    Unlimited,
}

/// Why a session cannot be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeError {
    /// Another connection is attached.
    Attached,
    /// The session has ended or expired.
    Gone,
}

/// How long a session stays detached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detached {
    /// The session expires at this time.
    Until(Instant),
    /// The session does not expire.
    Forever,
}

/// The attachment of a session to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Attached,
    Detached(Detached),
    Ended,
}

/// The lease of one session, which starts attached.
#[derive(Debug)]
pub(crate) struct Lease {
    ttl: Ttl,
    epoch: Epoch,
    state: State,
}

impl Lease {
    pub(crate) fn new(ttl: Ttl) -> Self {
        Lease {
            ttl,
            epoch: Epoch(1),
            state: State::Attached,
        }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn ttl(&self) -> Ttl {
        self.ttl
    }

    pub(crate) fn set_ttl(&mut self, ttl: Ttl) {
        self.ttl = ttl;
    }

    /// Whether this attachment is the current one.
    pub(crate) fn is_attached(&self, epoch: Epoch) -> bool {
        self.epoch == epoch && self.state == State::Attached
    }

    /// Whether a connection is attached.
    pub(crate) fn has_owner(&self) -> bool {
        self.state == State::Attached
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// When it expires, if it is detached with a limit.
    pub(crate) fn expires(&self) -> Option<Instant> {
        match self.state {
            State::Detached(Detached::Until(expires)) => Some(expires),
            _ => None,
        }
    }

    /// Detaches a connection, if it is the current one. The lease is `longest` at most.
    pub(crate) fn detach(
        &mut self,
        epoch: Epoch,
        now: Instant,
        longest: Option<Duration>,
    ) -> Option<Detached> {
        if !self.is_attached(epoch) {
            return None;
        }
        let detached = match (self.ttl, longest) {
            (Ttl::For(ttl), longest) => {
                let ttl = longest.map_or(ttl, |longest| longest.min(ttl));
                Detached::Until(clock::after(now, ttl))
            }
            (Ttl::Unlimited, Some(longest)) => Detached::Until(clock::after(now, longest)),
            (Ttl::Unlimited, None) => Detached::Forever,
        };
        self.state = State::Detached(detached);
        Some(detached)
    }

    /// Lets a detached session expire after `longest` at the latest. Returns when it expires if that has
    /// changed.
    pub(crate) fn shorten(&mut self, now: Instant, longest: Duration) -> Option<Instant> {
        let State::Detached(detached) = self.state else {
            return None;
        };
        let latest = clock::after(now, longest);
        let longer = match detached {
            Detached::Until(expires) => latest < expires,
            Detached::Forever => true,
        };
        longer.then(|| {
            self.state = State::Detached(Detached::Until(latest));
            latest
        })
    }

    /// Attaches another connection. Fails at the exact time of expiry.
    pub(crate) fn resume(&mut self, now: Instant, takeover: bool) -> Result<Epoch, ResumeError> {
        match self.state {
            State::Ended => return Err(ResumeError::Gone),
            State::Detached(Detached::Until(expires)) if now >= expires => {
                return Err(ResumeError::Gone);
            }
            State::Attached if !takeover => return Err(ResumeError::Attached),
            _ => {}
        }
        self.epoch = Epoch(self.epoch.0 + 1);
        self.state = State::Attached;
        Ok(self.epoch)
    }

    /// Ends it if it has expired, and returns whether it has.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        let over = self.expires().is_some_and(|expires| now >= expires);
        if over {
            self.state = State::Ended;
        }
        over
    }

    /// Ends it. Returns false if it had ended before.
    pub(crate) fn end(&mut self) -> bool {
        let first = self.state != State::Ended;
        self.state = State::Ended;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Operation {
        Pass(u64),
        Detach(usize),
        Resume(bool),
        Expire,
        End,
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            4 => (0_u64..40).prop_map(Operation::Pass),
            4 => (0_usize..3).prop_map(Operation::Detach),
            4 => any::<bool>().prop_map(Operation::Resume),
            2 => Just(Operation::Expire),
            1 => Just(Operation::End),
        ]
    }

    proptest! {
        /// Compares with a model that only remembers when the last owner detached.
        #[test]
        fn any_history_matches_the_model(unlimited in any::<bool>(), operations in proptest::collection::vec(operation(), 1..60)) {
            let start = Instant::now();
            let mut now = start;
            let ttl = if unlimited { Ttl::Unlimited } else { Ttl::For(Duration::from_secs(30)) };
            let mut lease = Lease::new(ttl);
            let mut epochs = vec![lease.epoch()];
            // The time of the detach, or `None` while attached.
            let mut left: Option<Instant> = None;
            let mut ended = false;
            for operation in operations {
                let over = !unlimited && left.is_some_and(|left| now >= left + Duration::from_secs(30));
                match operation {
                    Operation::Pass(seconds) => now += Duration::from_secs(seconds),
                    Operation::Detach(back) => {
                        let epoch = epochs[epochs.len().saturating_sub(1 + back)];
                        let newest = epoch == *epochs.last().unwrap();
                        let counted = lease.detach(epoch, now, None).is_some();
                        prop_assert_eq!(counted, newest && left.is_none() && !ended, "only the current attachment detaches");
                        if counted { left = Some(now); }
                    }
                    Operation::Resume(takeover) => {
                        let expected = if ended || over { Err(ResumeError::Gone) }
                            else if left.is_none() && !takeover { Err(ResumeError::Attached) }
                            else { Ok(()) };
                        let got = lease.resume(now, takeover);
                        prop_assert_eq!(got.map(|_| ()), expected);
                        if let Ok(epoch) = got {
                            prop_assert!(!epochs.contains(&epoch));
                            epochs.push(epoch);
                            left = None;
                        }
                    }
                    Operation::Expire => {
                        prop_assert_eq!(lease.expire(now), over && !ended);
                        ended |= over;
                    }
                    Operation::End => {
                        prop_assert_eq!(lease.end(), !ended);
                        ended = true;
                    }
                }
                prop_assert_eq!(lease.has_ended(), ended);
                prop_assert_eq!(lease.has_owner(), left.is_none() && !ended);
            }
        }
    }

    #[test]
    fn longest_lease_never_expires() {
        let now = Instant::now();
        let mut lease = Lease::new(Ttl::For(Duration::MAX));
        lease.detach(lease.epoch(), now, None);
        assert!(!lease.expire(now + Duration::from_secs(1_000_000_000)));
    }

    #[test]
    fn lease_is_limited_when_detached_or_later() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let until = |seconds| Some(Detached::Until(now + seconds * second));
        for (ttl, longest, expected) in [
            (Ttl::For(90 * second), None, until(90)),
            (Ttl::For(90 * second), Some(60 * second), until(60)),
            (Ttl::For(30 * second), Some(60 * second), until(30)),
            (Ttl::Unlimited, Some(60 * second), until(60)),
            (Ttl::Unlimited, None, Some(Detached::Forever)),
        ] {
            let mut lease = Lease::new(ttl);
            assert_eq!(lease.shorten(now, second), None, "attached");
            assert_eq!(lease.detach(lease.epoch(), now, longest), expected);
            let later = now + 20 * second;
            let shortened = lease
                .expires()
                .is_none_or(|expires| expires > now + 45 * second);
            let latest = shortened.then_some(later + 25 * second);
            assert_eq!(
                lease.shorten(later, 25 * second),
                latest,
                "{ttl:?} {longest:?}"
            );
            assert_eq!(lease.shorten(later, 25 * second), None, "shortened already");
        }
    }

    #[test]
    fn resume_at_expiry_fails() {
        let now = Instant::now();
        let mut lease = Lease::new(Ttl::For(Duration::from_secs(30)));
        lease.detach(lease.epoch(), now, None);
        let just_before = now + Duration::from_millis(29_999);
        assert!(!lease.expire(just_before));
        assert_eq!(
            lease.resume(now + Duration::from_secs(30), true),
            Err(ResumeError::Gone)
        );
        assert!(lease.resume(just_before, false).is_ok());
    }
}
