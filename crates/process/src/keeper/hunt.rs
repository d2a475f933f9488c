//! Killing everything below one process, however fast it forks.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::family::Family;

/// How often everybody is looked for, in a tree that changes all the while, before what was found
/// has to do.
pub(super) const SWEEPS: usize = 64;

/// Between two rounds while there is somebody new in each.
const SHORTEST: Duration = Duration::from_millis(1);

/// Between two rounds when all that is left was killed before and doesn't die, since it hangs in
/// the kernel or isn't ours to kill.
const LONGEST: Duration = Duration::from_millis(250);

/// Rounds of killing, again and again until whoever holds this finds that nobody is left.
#[derive(Debug)]
pub(super) struct Hunt {
    next: Instant,
    pause: Duration,
    /// Whom the last round has killed, by number and start.
    killed: HashSet<(Pid, u64)>,
}

impl Hunt {
    /// One whose first round is due now.
    pub(super) fn new() -> Self {
        Self {
            next: Instant::now(),
            pause: SHORTEST,
            killed: HashSet::new(),
        }
    }

    /// How long it is until the next round.
    pub(super) fn pause(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// One round, if it is due. Stops everything first, until nobody new turns up: what is stopped
    /// can't fork, and as long as it lives its place is taken in whatever bounds the number of
    /// processes. Then kills it all.
    pub(super) fn round(&mut self, family: Family, root: Pid, spared: &HashSet<Pid>) {
        if !self.pause().is_zero() {
            return;
        }
        let mut known = HashSet::new();
        let mut found = Vec::new();
        for _ in 0..SWEEPS {
            let before = found.len();
            let members = family.below(root, spared).into_iter();
            found.extend(members.filter(|entry| known.insert((entry.pid, entry.started))));
            if found.len() == before {
                break;
            }
            for entry in &found[before..] {
                entry.signal(Signal::STOP);
            }
        }
        for entry in &found {
            entry.signal(Signal::KILL);
        }
        self.pause = match known.is_subset(&self.killed) {
            true => (self.pause * 2).min(LONGEST),
            false => SHORTEST,
        };
        self.next = Instant::now() + self.pause;
        self.killed = known;
    }
}
