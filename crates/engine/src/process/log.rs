//! The log of a process with its memory.

use std::{
    ops::{Deref, DerefMut},
    sync::Weak,
};

use outpost_journal::Journal;
use parking_lot::MutexGuard;

use super::Watcher;
use crate::output_budget::{MIN_BYTES, OutputBudget, output_cost};

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
    pub(super) watcher: Option<Weak<dyn Watcher>>,
    /// The memory of the description of the process.
    pub(super) about_bytes: usize,
    /// The part of the budget that output and description use.
    pub(super) charged: usize,
}

/// The locked log of a process. Charges the kept output when it is unlocked.
pub(crate) struct LogGuard<'a> {
    log: MutexGuard<'a, Log>,
    budget: &'a OutputBudget,
}

impl<'a> LogGuard<'a> {
    pub(super) fn new(log: MutexGuard<'a, Log>, budget: &'a OutputBudget) -> Self {
        LogGuard { log, budget }
    }

    /// How much output may be read now.
    pub(super) fn room(&self) -> Room {
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
