//! Kills all descendants of a process, however fast they fork.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::descendants::ChildLookupMethod;

/// How often a changing tree is scanned before the processes found so far are signalled.
pub(super) const MAX_SCANS: usize = 64;

/// The pause between two rounds while each finds new processes.
const MIN_PAUSE: Duration = Duration::from_millis(1);

/// The pause between two rounds when all remaining processes were killed before and do not die,
/// because they hang in the kernel or belong to another user.
const MAX_PAUSE: Duration = Duration::from_millis(250);

/// Kills in rounds. The owner drops it when no process is left.
#[derive(Debug)]
pub(super) struct TreeKiller {
    next: Instant,
    pause: Duration,
    /// The processes killed in the last round, by pid and start time.
    killed: HashSet<(Pid, u64)>,
}

impl TreeKiller {
    /// A killer whose first round is due now.
    pub(super) fn new() -> Self {
        Self {
            next: Instant::now(),
            pause: MIN_PAUSE,
            killed: HashSet::new(),
        }
    }

    pub(super) fn time_until_due(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Runs one round if it is due: stops all processes until a scan finds no new one, then kills
    /// them. A stopped process cannot fork, and while it lives it occupies its slot in any limit on
    /// the number of processes.
    pub(super) fn run_if_due(
        &mut self,
        lookup: ChildLookupMethod,
        root: Pid,
        excluded: &HashSet<Pid>,
    ) {
        if !self.time_until_due().is_zero() {
            return;
        }
        let mut known = HashSet::new();
        let mut found = Vec::new();
        for _ in 0..MAX_SCANS {
            let before = found.len();
            let members = lookup.descendants(root, excluded).into_iter();
            found.extend(members.filter(|stat| known.insert((stat.pid, stat.started))));
            if found.len() == before {
                break;
            }
            for stat in &found[before..] {
                stat.signal(Signal::STOP);
            }
        }
        for stat in &found {
            stat.signal(Signal::KILL);
        }
        self.pause = if known.is_subset(&self.killed) {
            (self.pause * 2).min(MAX_PAUSE)
        } else {
            MIN_PAUSE
        };
        self.next = Instant::now() + self.pause;
        self.killed = known;
    }
}
