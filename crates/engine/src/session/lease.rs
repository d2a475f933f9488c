//! How long a session lasts. Pure: time is passed in.

use std::time::{Duration, Instant};

use crate::clock;

/// Which of a session's attachments is meant: a connection that was replaced
/// must not detach its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch(u64);

/// How long a session stays when nobody is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// So long.
    For(Duration),
    /// Until it is closed.
    Unlimited,
}

/// Why a session can't be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeRefusal {
    /// Another connection has it.
    Attached,
    /// It has ended, or its time is over.
    Gone,
}

/// What a detached session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detached {
    /// It ends at this moment.
    Until(Instant),
    /// It stays.
    Forever,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Attached,
    Detached(Detached),
    Ended,
}

/// The lease of one session, attached from its first moment.
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

    pub(crate) fn set_ttl(&mut self, ttl: Ttl) {
        self.ttl = ttl;
    }

    /// Whether this attachment is the one in force.
    pub(crate) fn is_attached(&self, epoch: Epoch) -> bool {
        self.epoch == epoch && self.state == State::Attached
    }

    /// Whether anybody is attached.
    pub(crate) fn has_owner(&self) -> bool {
        self.state == State::Attached
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// When it ends, if it is detached and does.
    pub(crate) fn expires(&self) -> Option<Instant> {
        match self.state {
            State::Detached(Detached::Until(expires)) => Some(expires),
            _ => None,
        }
    }

    /// A connection has gone; nothing happens if it wasn't the one in force.
    pub(crate) fn detach(&mut self, epoch: Epoch, now: Instant) -> Option<Detached> {
        if !self.is_attached(epoch) {
            return None;
        }
        let detached = match self.ttl {
            Ttl::For(ttl) => Detached::Until(clock::after(now, ttl)),
            Ttl::Unlimited => Detached::Forever,
        };
        self.state = State::Detached(detached);
        Some(detached)
    }

    /// Another connection wants it. At the boundary the teardown wins.
    pub(crate) fn resume(&mut self, now: Instant, takeover: bool) -> Result<Epoch, ResumeRefusal> {
        match self.state {
            State::Ended => return Err(ResumeRefusal::Gone),
            State::Detached(Detached::Until(expires)) if now >= expires => {
                return Err(ResumeRefusal::Gone);
            }
            State::Attached if !takeover => return Err(ResumeRefusal::Attached),
            _ => {}
        }
        self.epoch = Epoch(self.epoch.0 + 1);
        self.state = State::Attached;
        Ok(self.epoch)
    }

    /// Ends it if its time is over; says whether it has.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        let over = self.expires().is_some_and(|expires| now >= expires);
        if over {
            self.state = State::Ended;
        }
        over
    }

    /// Ends it; says whether it hadn't ended before.
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
        /// Against a model that only remembers when the last owner left.
        #[test]
        fn any_history_keeps_the_promises(unlimited in any::<bool>(), operations in proptest::collection::vec(operation(), 1..60)) {
            let start = Instant::now();
            let mut now = start;
            let ttl = if unlimited { Ttl::Unlimited } else { Ttl::For(Duration::from_secs(30)) };
            let mut lease = Lease::new(ttl);
            let mut epochs = vec![lease.epoch()];
            // None: attached. Some: since when it is detached.
            let mut left: Option<Instant> = None;
            let mut ended = false;
            for operation in operations {
                let over = !unlimited && left.is_some_and(|left| now >= left + Duration::from_secs(30));
                match operation {
                    Operation::Pass(seconds) => now += Duration::from_secs(seconds),
                    Operation::Detach(back) => {
                        let epoch = epochs[epochs.len().saturating_sub(1 + back)];
                        let newest = epoch == *epochs.last().unwrap();
                        let counted = lease.detach(epoch, now).is_some();
                        prop_assert_eq!(counted, newest && left.is_none() && !ended, "only the one in force detaches");
                        if counted { left = Some(now); }
                    }
                    Operation::Resume(takeover) => {
                        let expected = if ended || over { Err(ResumeRefusal::Gone) }
                            else if left.is_none() && !takeover { Err(ResumeRefusal::Attached) }
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
    fn a_lease_may_be_as_long_as_can_be_said() {
        let now = Instant::now();
        let mut lease = Lease::new(Ttl::For(Duration::MAX));
        lease.detach(lease.epoch(), now);
        assert!(!lease.expire(now + Duration::from_secs(1_000_000_000)));
    }

    #[test]
    fn at_the_boundary_the_teardown_wins() {
        let now = Instant::now();
        let mut lease = Lease::new(Ttl::For(Duration::from_secs(30)));
        lease.detach(lease.epoch(), now);
        let just_before = now + Duration::from_millis(29_999);
        assert!(!lease.expire(just_before));
        assert_eq!(
            lease.resume(now + Duration::from_secs(30), true),
            Err(ResumeRefusal::Gone)
        );
        assert!(lease.resume(just_before, false).is_ok());
    }
}
