//! The snapshots of a session.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use outpost_sandbox::policy::Policy;
use outpost_types::{EnvPolicy, ResourceLimits};
use tokio::sync::Semaphore;

use super::{Snapshot, shell::ShellKind};
use crate::kept_output::OutputShare;

/// A charge is at most this part of the peer's free memory, so that output keeps most of it.
const FREE_PER_CHARGE: usize = 8;

/// Everything that a snapshot depends on. The environment of the request is no part of it, as in the released
/// servers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SnapshotKey {
    pub(super) scope_id: String,
    pub(super) kind: ShellKind,
    pub(super) program: String,
    pub(super) cwd: PathBuf,
    pub(super) env_policy: Option<EnvPolicy>,
    /// The sandbox policy of the shell: the requested one or the principal's.
    pub(super) policy: Option<Policy>,
    /// The profile must not escape the limits of a command.
    pub(super) limits: ResourceLimits,
}

/// The snapshot of one key.
pub(crate) struct SnapshotEntry {
    key: SnapshotKey,
    /// Held while the state is captured. Other starts wait for it.
    pub(crate) turn: Semaphore,
    /// `None` if the capture failed. Not set before.
    pub(crate) outcome: OnceLock<Option<Snapshot>>,
    /// The memory of the key.
    _charge: Charge,
}

/// The snapshots of a session, oldest first.
#[derive(Default)]
pub(crate) struct SnapshotCache {
    entries: VecDeque<Arc<SnapshotEntry>>,
}

impl SnapshotCache {
    /// Returns the entry of a key. Makes one if there is none, for which the oldest of `max` gives way.
    /// Returns `None` if there is no memory for it.
    pub(crate) fn entry(
        &mut self,
        key: SnapshotKey,
        share: OutputShare,
        max: usize,
    ) -> Option<Arc<SnapshotEntry>> {
        if let Some(entry) = self.entries.iter().find(|entry| entry.key == key) {
            return Some(Arc::clone(entry));
        }
        let mut charge = Charge::new(share);
        // An upper estimate.
        if !charge.grow(format!("{key:?}").len()) {
            return None;
        }
        let entry = Arc::new(SnapshotEntry {
            key,
            turn: Semaphore::new(1),
            outcome: OnceLock::new(),
            _charge: charge,
        });
        self.entries.push_back(Arc::clone(&entry));
        if self.entries.len() > max {
            self.entries.pop_front();
        }
        Some(entry)
    }
}

/// Memory charged to the share of a peer until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    share: OutputShare,
    bytes: usize,
}

impl Charge {
    pub(crate) fn new(share: OutputShare) -> Self {
        Charge { share, bytes: 0 }
    }

    /// Charges `bytes` in all. Returns whether there is space for them.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let has_space = bytes <= self.share.free() / FREE_PER_CHARGE;
        if has_space {
            self.share.change(self.bytes, bytes);
            self.bytes = bytes;
        }
        has_space
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.share.change(self.bytes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Peer, kept_output::OutputBudget};

    fn key(scope: usize) -> SnapshotKey {
        SnapshotKey {
            scope_id: scope.to_string(),
            kind: ShellKind::Bash,
            program: "/bin/bash".to_owned(),
            cwd: "/".into(),
            env_policy: None,
            policy: None,
            limits: ResourceLimits::default(),
        }
    }

    #[test]
    fn oldest_entry_gives_way() {
        let budget = Arc::new(OutputBudget::new(1 << 20));
        let share = budget.share(Peer::Owner);
        let mut cache = SnapshotCache::default();
        let mut entry = |scope| cache.entry(key(scope), share.clone(), 2).expect("memory");
        let first = entry(1);
        assert!(Arc::ptr_eq(&first, &entry(1)));
        let second = entry(2);
        assert!(Arc::ptr_eq(&first, &entry(1)), "both have a place");
        entry(3);
        assert!(Arc::ptr_eq(&second, &entry(2)), "the second is younger");
        assert!(!Arc::ptr_eq(&first, &entry(1)));
    }

    #[test]
    fn entries_leave_memory_for_output() {
        let budget = Arc::new(OutputBudget::new(10_000));
        let share = budget.share(Peer::Owner);
        let mut cache = SnapshotCache::default();
        let entries = (0..1000).map_while(|scope| cache.entry(key(scope), share.clone(), 1000));
        let count = entries.count();
        assert!((10..1000).contains(&count), "{count}");
        assert!(share.free() > 1000);
        let mut charge = Charge::new(share.clone());
        assert!(!charge.grow(2000));
        drop(cache);
        assert_eq!(share.free(), 10_000);
        assert!(charge.grow(1000) && !charge.grow(2000));
        assert_eq!(share.free(), 9000);
        drop(charge);
        assert_eq!(share.free(), 10_000);
    }
}
