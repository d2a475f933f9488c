//! The output that processes keep: the log of each, charged to the budget of all.

use std::{
    ops::{Deref, DerefMut},
    sync::{
        Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use outpost_journal::Journal;
use parking_lot::MutexGuard;
use tokio::sync::Notify;

use crate::EventListener;

/// Memory of a chunk besides its bytes.
const CHUNK_BYTES: usize = 128;

/// Output that a process may always read and keep, so that it never stops for the output of
/// others.
pub(crate) const MIN_BYTES: usize = 4 * 1024;

/// The memory of the output that processes keep, for their owners or as history.
///
/// The limit of each process is what is free (a dynamic threshold): a single one may use half of
/// the budget, and many leave something for the next one.
#[derive(Debug)]
pub(crate) struct OutputBudget {
    max_bytes: usize,
    used: AtomicUsize,
    /// Notified when most of the budget is used.
    scarce: Notify,
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
            scarce: Notify::new(),
        }
    }

    /// Returns the bytes that are free. A process may use more than that for a moment, because its
    /// output is counted after it was read.
    pub(crate) fn free(&self) -> usize {
        let used = self.used.load(Ordering::Relaxed);
        self.max_bytes.saturating_sub(used)
    }

    /// Returns whether the description of a new process may have this size.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        bytes <= MIN_BYTES || bytes <= self.free() / 8
    }

    /// Replaces a process's use of `before` bytes by `after` bytes.
    pub(crate) fn change(&self, before: usize, after: usize) {
        if after <= before {
            self.used.fetch_sub(before - after, Ordering::Relaxed);
            return;
        }
        let used = self.used.fetch_add(after - before, Ordering::Relaxed);
        if used > self.max_bytes / 4 * 3 {
            self.scarce.notify_one();
        }
    }

    /// Waits until most of the budget is used. Supports one waiter.
    pub(crate) async fn wait_scarce(&self) {
        self.scarce.notified().await;
    }

    /// Returns how much history each process may keep if half of the budget is to be free, given
    /// the history of each.
    pub(crate) fn history_limit(&self, history: &[usize]) -> usize {
        let used = self.used.load(Ordering::Relaxed);
        let excess = used.saturating_sub(self.max_bytes / 2);
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
}

/// How much output of a process may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// At most this much.
    Bytes(usize),
    /// None until the owner's cursor advances.
    None,
    /// None until memory is free.
    NoMemory,
}

impl Room {
    /// Whether output may be read.
    pub(crate) fn is_some(self) -> bool {
        matches!(self, Room::Bytes(_))
    }
}

/// The journal of a process and its reader.
pub(crate) struct Log {
    pub(crate) journal: Journal,
    /// The feed of the connection that owns the process, while attached. Weak, because the
    /// connection holds the process.
    pub(crate) listener: Option<Weak<dyn EventListener>>,
    /// The memory of the description of the process.
    pub(crate) about_bytes: usize,
    /// The part of the budget that output and description use.
    pub(crate) charged: usize,
}

/// The locked log of a process. Charges the kept output when it is unlocked.
pub(crate) struct LogGuard<'a> {
    log: MutexGuard<'a, Log>,
    budget: &'a OutputBudget,
}

impl<'a> LogGuard<'a> {
    pub(crate) fn new(log: MutexGuard<'a, Log>, budget: &'a OutputBudget) -> Self {
        LogGuard { log, budget }
    }

    /// How much output may be read now.
    pub(crate) fn room(&self) -> Room {
        if !self.journal.has_room() {
            return Room::None;
        }
        let (bytes, chunks) = self.journal.ahead();
        let ahead = output_cost(bytes, chunks);
        match self.budget.free().saturating_sub(ahead) {
            0 if ahead > MIN_BYTES => Room::NoMemory,
            free => Room::Bytes(free.max(MIN_BYTES)),
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
        let cost = output + self.log.about_bytes;
        if cost != self.log.charged {
            self.budget.change(self.log.charged, cost);
            self.log.charged = cost;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    #[test]
    fn history_of_those_that_keep_most_is_cut_first() {
        let budget = OutputBudget::new(1000 * KIB);
        let history = [600 * KIB, 100 * KIB, 20 * KIB];
        budget.change(0, history.iter().sum());
        let limit = budget.history_limit(&history);
        assert!((100 * KIB..=400 * KIB).contains(&limit), "{limit}");
        budget.change(600 * KIB, limit);
        assert!(budget.free() >= 500 * KIB);
        assert_eq!(budget.history_limit(&[limit, 100 * KIB, 20 * KIB]), limit);
    }

    #[test]
    fn little_history_is_always_kept() {
        let budget = OutputBudget::new(100 * KIB);
        budget.change(0, 1000 * KIB);
        let limit = budget.history_limit(&[10 * KIB; 3]);
        assert!(limit > MIN_BYTES / 2, "{limit}");
        assert_eq!(budget.free(), 0);
    }
}
