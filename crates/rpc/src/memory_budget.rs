//! Bounds the memory of all connections together, and shares it among them.

mod charge;
mod holders;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub use self::charge::{MemoryCharge, charged_bytes};
use self::holders::Holders;
use crate::write_progress::WriteProgress;

/// The uncounted bytes of a connection: bytes that are not taken from the budget, so that small
/// requests, and a response with one chunk of output, seldom wait for other connections.
const UNCOUNTED_BYTES: usize = 128 * 1024;
/// The maximum of the uncounted bytes of all connections.
const ALL_UNCOUNTED_BYTES: usize = 32 * 1024 * 1024;
/// The uncounted bytes of all connections are at most one part in this many of the budget, but not less
/// than [`LEAST_UNCOUNTED_BYTES`].
const UNCOUNTED_FRACTION: usize = 4;
const LEAST_UNCOUNTED_BYTES: usize = 4 * 1024 * 1024;
/// The reserve for connections that hold few bytes is one part in this many of the budget.
const RESERVE_FRACTION: usize = 9;
/// A connection may hold this many times the free bytes beyond the reserve.
const LARGE_SHARE: usize = 8;
/// All connections of a peer may together hold this many times the free bytes beyond the reserve.
const PEER_SHARE: usize = 16;
/// Connections that do not read are closed when a request has waited for one part in this many of its time,
/// and at least one part in this many of the budget is freed.
const CLOSE_FRACTION: u32 = 4;
/// A connection, and a peer, may always hold one part in this many of all free bytes, the reserve
/// included.
const SMALL_SHARE: usize = 64;

/// Bytes for the messages, answers and bodies of all connections. Clones share it.
///
/// The limit of a connection depends on the free bytes (a dynamic threshold, as in shared-memory
/// switches): a single connection may use most of the budget, and if many connections use as much as
/// they may, free bytes are left for another.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    shared: Arc<Budget>,
}

/// The budget, shared by all connections.
#[derive(Debug)]
struct Budget {
    max_bytes: usize,
    /// Time after which a request that waits for bytes is rejected, and for which a connection may not read
    /// while others wait.
    timeout: Duration,
    holders: Holders,
    used: AtomicUsize,
    /// Bytes that are not counted in `used`.
    uncounted: AtomicUsize,
    /// Notified when bytes are released.
    released: Notify,
}

impl Budget {
    /// Returns whether a connection may hold `held` bytes, and its peer `peer_held`, while `free` bytes are
    /// left.
    fn permits(&self, held: usize, peer_held: usize, free: usize) -> bool {
        let beyond_reserve = free.saturating_sub(self.max_bytes / RESERVE_FRACTION);
        let may_hold = |held: usize, share| {
            held <= beyond_reserve.saturating_mul(share) || held <= free / SMALL_SHARE
        };
        may_hold(held, LARGE_SHARE) && may_hold(peer_held, PEER_SHARE)
    }

    /// Takes `bytes` for a connection that holds `held` afterwards, and its peer `peer_held`.
    fn take(&self, bytes: usize, held: usize, peer_held: usize) -> bool {
        let take = |used: usize| {
            let used = used.checked_add(bytes)?;
            let free = self.max_bytes.checked_sub(used)?;
            self.permits(held, peer_held, free).then_some(used)
        };
        self.used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
            .is_ok()
    }

    /// Takes up to `bytes` uncounted bytes. Returns how many were taken.
    fn take_uncounted(&self, bytes: usize) -> usize {
        let max = self.max_bytes / UNCOUNTED_FRACTION;
        let max = max.clamp(LEAST_UNCOUNTED_BYTES, ALL_UNCOUNTED_BYTES);
        let available = |taken: usize| bytes.min(max.saturating_sub(taken));
        let take = |taken| Some(taken + available(taken)).filter(|_| bytes > 0);
        self.uncounted
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
            .map_or(0, available)
    }

    fn release(&self, counted: usize, uncounted: usize) {
        self.used.fetch_sub(counted, Ordering::AcqRel);
        self.uncounted.fetch_sub(uncounted, Ordering::AcqRel);
        self.released.notify_waiters();
    }
}

impl MemoryBudget {
    /// Creates a budget. A request that finds no bytes waits for at most `timeout`, and once more if
    /// connections are closed for it: those that have not read for as long.
    #[must_use]
    pub fn new(max_bytes: usize, timeout: Duration) -> Self {
        MemoryBudget {
            shared: Arc::new(Budget {
                max_bytes,
                timeout,
                holders: Holders::default(),
                used: AtomicUsize::new(0),
                uncounted: AtomicUsize::new(0),
                released: Notify::new(),
            }),
        }
    }

    /// Creates the share of a new peer.
    #[must_use]
    pub fn peer(&self) -> PeerMemory {
        PeerMemory {
            shared: Arc::new(PeerShare {
                budget: Arc::clone(&self.shared),
                held: AtomicUsize::new(0),
            }),
        }
    }

    /// Creates the share of a new connection that is the only one of its peer.
    #[must_use]
    pub fn share(&self) -> MemoryShare {
        self.peer().share()
    }
}

/// The memory of all connections of one peer. Clones share it.
#[derive(Clone, Debug)]
pub struct PeerMemory {
    shared: Arc<PeerShare>,
}

/// The bytes that the connections of one peer hold.
#[derive(Debug)]
struct PeerShare {
    budget: Arc<Budget>,
    /// The bytes of its connections that are taken from the budget.
    held: AtomicUsize,
}

impl PeerMemory {
    /// Creates the share of a new connection.
    #[must_use]
    pub fn share(&self) -> MemoryShare {
        MemoryShare {
            shared: Arc::new(Share {
                budget: Arc::clone(&self.shared.budget),
                peer: Arc::clone(&self.shared),
                held: Mutex::default(),
                writes: WriteProgress::default(),
            }),
        }
    }

    /// Whether a connection uses it.
    #[must_use]
    pub fn is_used(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }
}

/// The memory of one connection. Clones share it.
#[derive(Clone, Debug)]
pub struct MemoryShare {
    shared: Arc<Share>,
}

/// The bytes that one connection holds.
#[derive(Debug)]
struct Share {
    budget: Arc<Budget>,
    peer: Arc<PeerShare>,
    held: Mutex<Held>,
    /// The progress of the connection's writing task.
    writes: WriteProgress,
}

/// All bytes of a connection.
#[derive(Debug, Default)]
struct Held {
    /// Taken from the budget.
    counted: usize,
    /// At most [`UNCOUNTED_BYTES`].
    uncounted: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.holders.remove(self);
    }
}

impl Share {
    fn take(&self, bytes: usize) -> bool {
        let mut held = self.held.lock();
        let uncounted = bytes.min(UNCOUNTED_BYTES - held.uncounted);
        let uncounted = self.budget.take_uncounted(uncounted);
        let more = bytes - uncounted;
        if more > 0 && !self.take_counted(more, held.counted) {
            self.budget.uncounted.fetch_sub(uncounted, Ordering::AcqRel);
            return false;
        }
        held.counted += more;
        held.uncounted += uncounted;
        true
    }

    fn release(&self, bytes: usize) {
        let mut held = self.held.lock();
        let counted = bytes.min(held.counted);
        let uncounted = bytes - counted;
        held.counted -= counted;
        held.uncounted -= uncounted;
        drop(held);
        self.peer.held.fetch_sub(counted, Ordering::AcqRel);
        self.budget.release(counted, uncounted);
    }

    /// Takes `more` bytes from the budget for a connection that holds `counted` of it.
    fn take_counted(&self, more: usize, counted: usize) -> bool {
        let Some(held) = counted.checked_add(more) else {
            return false;
        };
        // Taken before the budget, so that two connections of the peer cannot both pass its limit.
        let peer_held = self.peer.held.fetch_add(more, Ordering::AcqRel);
        let taken = self.budget.take(more, held, peer_held.saturating_add(more));
        if !taken {
            self.peer.held.fetch_sub(more, Ordering::AcqRel);
        }
        taken
    }

    /// Closes connections that do not read until this one can get `more` bytes. Returns whether there
    /// was one.
    fn close_unread(&self, more: usize) -> bool {
        let budget = &self.budget;
        let reserve = budget.max_bytes / RESERVE_FRACTION;
        let held = self.held.lock().counted.saturating_add(more);
        let free = budget.max_bytes - budget.used.load(Ordering::Acquire);
        let needed = more.saturating_add(reserve + held / LARGE_SHARE);
        let needed = needed.saturating_sub(free);
        let needed = needed.max(budget.max_bytes / CLOSE_FRACTION as usize);
        budget.holders.close_unread(needed, budget.timeout)
    }

    /// Returns whether the connection could get `bytes` if it were the only one.
    fn can_ever_take(&self, bytes: usize) -> bool {
        let most = bytes.saturating_sub(UNCOUNTED_BYTES);
        let free = self.budget.max_bytes.checked_sub(most);
        most == 0 || free.is_some_and(|free| self.budget.permits(most, most, free))
    }
}

impl MemoryShare {
    /// Cancels `close` when others wait for memory and the peer of this connection does not read.
    pub fn close_if_unread(&self, close: CancellationToken) {
        self.shared.budget.holders.add(&self.shared, close);
    }

    pub(crate) fn writes(&self) -> &WriteProgress {
        &self.shared.writes
    }

    /// Takes `bytes` if they are free.
    #[must_use]
    pub fn try_charge(&self, bytes: usize) -> Option<MemoryCharge> {
        let mut charge = self.empty_charge();
        charge.try_grow(bytes).then_some(charge)
    }

    /// Waits for `bytes`. Returns `None` if they are not free in time, or never can be.
    pub async fn charge(&self, bytes: usize) -> Option<MemoryCharge> {
        let mut charge = self.empty_charge();
        charge.grow(bytes).await.then_some(charge)
    }

    /// Returns a charge of no bytes, to be grown later.
    #[must_use]
    pub fn empty_charge(&self) -> MemoryCharge {
        MemoryCharge::empty(&self.shared)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const MIB: usize = 1024 * 1024;
    const TIMEOUT: Duration = Duration::from_secs(5);

    fn budget() -> MemoryBudget {
        MemoryBudget::new(144 * MIB, TIMEOUT)
    }

    #[test]
    fn single_connection_may_use_most_of_the_budget() {
        let budget = budget();
        let share = budget.share();
        let charge = share.try_charge(112 * MIB).expect("most of it");
        assert!(
            share.try_charge(16 * MIB).is_none(),
            "the rest is for others"
        );
        assert!(budget.share().try_charge(MIB / 4).is_some());
        drop(charge);
        assert_eq!(budget.shared.used.load(Ordering::Acquire), 0);
    }

    #[test]
    fn greedy_connections_leave_bytes_for_the_next_one() {
        for connections in [12, 100] {
            let budget = budget();
            let mut held = Vec::new();
            for _ in 0..connections {
                let share = budget.share();
                while let Some(charge) = share.try_charge(64 * 1024) {
                    held.push(charge);
                }
            }
            let last = budget.share();
            let bytes = UNCOUNTED_BYTES + 32 * 1024;
            assert!(last.try_charge(bytes).is_some(), "{connections}");
            drop(held);
            assert_eq!(budget.shared.used.load(Ordering::Acquire), 0);
        }
    }

    #[test]
    fn connections_of_one_peer_leave_bytes_for_another() {
        let budget = budget();
        let peer = budget.peer();
        let mut held = Vec::new();
        for _ in 0..300 {
            let share = peer.share();
            while let Some(charge) = share.try_charge(64 * 1024) {
                held.push(charge);
            }
        }
        assert!(peer.is_used());
        let other = budget.share();
        assert!(other.try_charge(4 * MIB).is_some());
        assert!(peer.share().try_charge(4 * MIB).is_none());
        drop(held);
        assert!(!peer.is_used());
        let mut both = [peer.share(), peer.share()].map(|share| share.try_charge(40 * MIB));
        assert!(
            both.iter().all(Option::is_some),
            "one leaves some for the next"
        );
        both.fill_with(|| None);
        assert_eq!(peer.shared.held.load(Ordering::Acquire), 0);
        assert_eq!(budget.shared.used.load(Ordering::Acquire), 0);
    }

    #[test]
    fn small_requests_are_not_counted() {
        let budget = MemoryBudget::new(0, TIMEOUT);
        let share = budget.share();
        let charge = share.try_charge(UNCOUNTED_BYTES).expect("it is small");
        assert!(share.try_charge(1).is_none());
        drop(charge);
        assert!(share.try_charge(1).is_some());
    }

    #[test]
    fn uncounted_bytes_of_all_connections_are_bounded() {
        let budget = budget();
        let connections = 2 * ALL_UNCOUNTED_BYTES / UNCOUNTED_BYTES;
        let take = |_| budget.share().try_charge(UNCOUNTED_BYTES).expect("bytes");
        let held: Vec<_> = (0..connections).map(take).collect();
        let used = || budget.shared.used.load(Ordering::Acquire);
        assert_eq!(used(), ALL_UNCOUNTED_BYTES);
        drop(held);
        assert_eq!(used(), 0);
        let _one = budget.share().try_charge(UNCOUNTED_BYTES).expect("bytes");
        assert_eq!(used(), 0);
    }

    #[test]
    fn small_budget_has_fewer_uncounted_bytes() {
        let budget = MemoryBudget::new(32 * MIB, TIMEOUT);
        let take = |_| budget.share().try_charge(UNCOUNTED_BYTES).expect("bytes");
        let held: Vec<_> = (0..96).map(take).collect();
        let used = budget.shared.used.load(Ordering::Acquire);
        assert_eq!(used, held.len() * UNCOUNTED_BYTES - 8 * MIB);
    }

    #[test]
    fn charge_can_be_split() {
        let budget = budget();
        let mut first = budget.share().try_charge(10 * MIB).expect("bytes");
        let second = first.split_off(4 * MIB);
        assert_eq!((first.bytes(), second.bytes()), (4 * MIB, 6 * MIB));
        drop(first);
        assert_eq!(
            budget.shared.used.load(Ordering::Acquire),
            6 * MIB - UNCOUNTED_BYTES
        );
        drop(second);
        assert_eq!(budget.shared.used.load(Ordering::Acquire), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn large_request_waits_for_bytes_and_is_rejected_in_time() {
        let budget = budget();
        let held = budget.share().try_charge(100 * MIB).expect("bytes");
        let other = budget.share();
        let start = Instant::now();
        assert!(other.charge(64 * MIB).await.is_none());
        assert_eq!(start.elapsed(), TIMEOUT);
        let release = async {
            // sleep: virtual time, while the request waits
            tokio::time::sleep(TIMEOUT / 2).await;
            drop(held);
        };
        let (charge, ()) = tokio::join!(other.charge(64 * MIB), release);
        assert!(charge.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn request_over_the_whole_budget_is_rejected_at_once() {
        let start = Instant::now();
        assert!(budget().share().charge(150 * MIB).await.is_none());
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
