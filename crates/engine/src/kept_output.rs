//! The output that processes keep. The log of each process is charged to the budget of all processes and
//! to the share of its peer.

use std::{
    collections::HashMap,
    ops::{Deref, DerefMut},
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use outpost_journal::Journal;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::{EventListener, Peer, peer_limiter::HELD_PER_FREE};

/// Memory of a chunk besides its bytes.
const CHUNK_BYTES: usize = 128;

/// Output that a process may always read and keep, so that the output of other processes never stops it.
pub(crate) const MIN_BYTES: usize = 4 * 1024;

/// The memory of the output that processes keep, for their owners or as history.
///
/// A process may keep as many bytes as are free (a dynamic threshold). A single process can therefore
/// use half of the budget, and several processes always leave free bytes for another. The processes of a
/// peer may together keep up to eight times the free bytes, so that other peers always find free bytes.
#[derive(Debug)]
pub(crate) struct OutputBudget {
    max_bytes: usize,
    used: AtomicUsize,
    /// The part of `used` of each peer, also held by its shares.
    peers: Mutex<HashMap<Peer, Arc<AtomicUsize>>>,
    /// Notified when most of the budget is used.
    scarce: Notify,
}

/// The part of the budget of one peer.
#[derive(Clone, Debug)]
pub(crate) struct OutputShare {
    pub(crate) peer: Peer,
    used: Arc<AtomicUsize>,
    budget: Arc<OutputBudget>,
}

/// Returns the memory of output with this many bytes and chunks.
pub(crate) fn output_cost(bytes: u64, chunks: usize) -> usize {
    bytes as usize + chunks * CHUNK_BYTES
}

impl OutputBudget {
    pub(crate) fn new(max_bytes: usize) -> Self {
        OutputBudget {
            max_bytes,
            used: AtomicUsize::new(0),
            peers: Mutex::default(),
            scarce: Notify::new(),
        }
    }

    /// Returns the share of a peer.
    pub(crate) fn share(self: &Arc<Self>, peer: Peer) -> OutputShare {
        let mut peers = self.peers.lock();
        // Remove the peers without processes.
        peers.retain(|_, used| Arc::strong_count(used) > 1);
        OutputShare {
            peer,
            used: Arc::clone(peers.entry(peer).or_default()),
            budget: Arc::clone(self),
        }
    }

    /// Waits until most of the budget is used. Supports one waiter.
    pub(crate) async fn wait_scarce(&self) {
        self.scarce.notified().await;
    }

    /// Returns the peers that use more than their fair part of half of the budget, and the bytes that
    /// each has beyond it.
    pub(crate) fn excess(&self) -> Vec<(Peer, usize)> {
        let peers = self.peers.lock();
        let used = peers
            .iter()
            .map(|(peer, used)| (*peer, used.load(Ordering::Relaxed)));
        let mut used: Vec<_> = used.collect();
        drop(peers);
        used.sort_unstable_by_key(|(_, bytes)| *bytes);
        let mut rest = self.max_bytes / 2;
        let mut excess = Vec::new();
        for (number, (peer, bytes)) in used.iter().enumerate() {
            // Bytes that smaller peers leave are for the others.
            let fair = rest / (used.len() - number);
            rest -= fair.min(*bytes);
            if *bytes > fair {
                excess.push((*peer, bytes - fair));
            }
        }
        excess
    }
}

/// Returns how much history each process may keep if `excess` bytes are to be freed, given the history
/// of each.
pub(crate) fn history_limit(excess: usize, history: &[usize]) -> usize {
    let mut limit = history.iter().copied().max().unwrap_or_default();
    while limit > MIN_BYTES {
        let freed: usize = history
            .iter()
            .map(|bytes| bytes.saturating_sub(limit))
            .sum();
        if freed >= excess {
            break;
        }
        limit /= 2;
    }
    limit
}

impl OutputShare {
    /// Returns the bytes that are free for the peer. A process may use more than that for a moment,
    /// because its output is counted after it was read.
    pub(crate) fn free(&self) -> usize {
        let used = self.budget.used.load(Ordering::Relaxed);
        let free = self.budget.max_bytes.saturating_sub(used);
        let used_by_peer = self.used.load(Ordering::Relaxed);
        let allowed = free.saturating_mul(HELD_PER_FREE);
        free.min(allowed.saturating_sub(used_by_peer))
    }

    /// Returns whether the description of a new process may have this size.
    pub(crate) fn has_space_for(&self, bytes: usize) -> bool {
        bytes <= MIN_BYTES || bytes <= self.free() / 8
    }

    /// Replaces a process's use of `before` bytes by `after` bytes.
    pub(crate) fn change(&self, before: usize, after: usize) {
        let budget = &self.budget;
        if after <= before {
            self.used.fetch_sub(before - after, Ordering::Relaxed);
            budget.used.fetch_sub(before - after, Ordering::Relaxed);
            return;
        }
        self.used.fetch_add(after - before, Ordering::Relaxed);
        let used = budget.used.fetch_add(after - before, Ordering::Relaxed);
        if used > budget.max_bytes / 4 * 3 {
            budget.scarce.notify_one();
        }
    }
}

/// How much output of a process may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadAllowance {
    /// At most this much.
    Bytes(usize),
    /// None until the owner's cursor advances.
    WindowFull,
    /// None until memory is free.
    NoMemory,
}

impl ReadAllowance {
    /// Whether output may be read.
    pub(crate) fn is_some(self) -> bool {
        matches!(self, ReadAllowance::Bytes(_))
    }
}

/// The journal of a process and its reader.
pub(crate) struct Log {
    pub(crate) journal: Journal,
    /// The feed of the connection that owns the process, while attached. Weak, because the
    /// connection holds the process.
    pub(crate) listener: Option<Weak<dyn EventListener>>,
    /// The memory of the description of the process.
    pub(crate) info_bytes: usize,
    /// The part of the budget that output and description use.
    pub(crate) charged: usize,
}

/// The locked log of a process. Charges the kept output when it is unlocked.
pub(crate) struct LogGuard<'a> {
    log: MutexGuard<'a, Log>,
    share: &'a OutputShare,
}

impl<'a> LogGuard<'a> {
    pub(crate) fn new(log: MutexGuard<'a, Log>, share: &'a OutputShare) -> Self {
        LogGuard { log, share }
    }

    /// How much output may be read now.
    pub(crate) fn space(&self) -> ReadAllowance {
        if !self.journal.has_space() {
            return ReadAllowance::WindowFull;
        }
        let (bytes, chunks) = self.journal.ahead();
        let ahead = output_cost(bytes, chunks);
        match self.share.free().saturating_sub(ahead) {
            0 if ahead > MIN_BYTES => ReadAllowance::NoMemory,
            free => ReadAllowance::Bytes(free.max(MIN_BYTES)),
        }
    }
}

impl Deref for LogGuard<'_> {
    type Target = Log;

    fn deref(&self) -> &Log {
        &self.log
    }
}

impl DerefMut for LogGuard<'_> {
    fn deref_mut(&mut self) -> &mut Log {
        &mut self.log
    }
}

impl Drop for LogGuard<'_> {
    fn drop(&mut self) {
        let journal = &self.log.journal;
        let output = output_cost(journal.retained_bytes(), journal.retained_chunks());
        let cost = output + self.log.info_bytes;
        if cost != self.log.charged {
            self.share.change(self.log.charged, cost);
            self.log.charged = cost;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    fn budget(max_bytes: usize) -> Arc<OutputBudget> {
        Arc::new(OutputBudget::new(max_bytes))
    }

    #[test]
    fn history_of_those_that_keep_most_is_cut_first() {
        let budget = budget(1000 * KIB);
        let share = budget.share(Peer::Owner);
        let history = [600 * KIB, 100 * KIB, 20 * KIB];
        share.change(0, history.iter().sum());
        assert_eq!(budget.excess(), [(Peer::Owner, 220 * KIB)]);
        let limit = history_limit(220 * KIB, &history);
        assert!((100 * KIB..=400 * KIB).contains(&limit), "{limit}");
        share.change(600 * KIB, limit);
        assert!(share.free() >= 500 * KIB);
        assert_eq!(budget.excess(), []);
    }

    #[test]
    fn little_history_is_always_kept() {
        let budget = budget(100 * KIB);
        let share = budget.share(Peer::Owner);
        share.change(0, 1000 * KIB);
        let limit = history_limit(950 * KIB, &[10 * KIB; 3]);
        assert!(limit > MIN_BYTES / 2, "{limit}");
        assert_eq!(share.free(), 0);
    }

    #[test]
    fn peer_with_much_output_leaves_some_for_others() {
        let budget = budget(9000 * KIB);
        let large = budget.share(Peer::User(1));
        let mut used = 0;
        while large.free() >= KIB {
            large.change(used, used + KIB);
            used += KIB;
        }
        assert!((7900 * KIB..=8100 * KIB).contains(&used), "{used}");
        let small = budget.share(Peer::User(2));
        assert!(small.free() >= 900 * KIB);
        small.change(0, 800 * KIB);
        let [(Peer::User(1), excess)] = budget.excess()[..] else {
            panic!("the other one keeps its output");
        };
        assert_eq!(excess, used - 3700 * KIB);
    }

    #[test]
    fn peers_without_processes_are_forgotten() {
        let budget = budget(9000 * KIB);
        for user in 0..100 {
            budget.share(Peer::User(user)).change(0, 0);
        }
        assert_eq!(budget.peers.lock().len(), 1);
    }
}
