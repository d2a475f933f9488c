//! How much of the machine somebody else used meanwhile: a number measured beside a compiler says
//! little, and it doesn't show in the number.

use std::fs;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

/// How many ticks of `/proc` make a second. It has been so on every Linux that we run on, and a
/// program without C can't ask.
const TICKS: f64 = 100.0;

/// The state of affairs at some moment.
#[derive(Clone, Copy)]
pub(super) struct Others {
    at: Instant,
    /// Ticks that all processors have been busy, as far as nobody of ours was it.
    busy: u64,
}

impl Others {
    pub(super) fn look() -> Result<Self> {
        let all = fs::read_to_string("/proc/stat").context("/proc/stat")?;
        let ours = fs::read_to_string("/proc/self/stat").context("/proc/self/stat")?;
        let all = busy(&all).context("no processors in /proc/stat")?;
        let ours = ours_and_our_children(&ours).context("no times in /proc/self/stat")?;
        Ok(Self {
            at: Instant::now(),
            busy: all.saturating_sub(ours),
        })
    }

    /// The share of all processors that others have used since then. What the kernel did on our
    /// behalf in threads of its own is among it, and so is the hypervisor's part.
    pub(super) fn share_since(self) -> Result<f64> {
        let now = Self::look()?;
        let cores = thread::available_parallelism()?.get() as f64;
        let there = (now.at - self.at).as_secs_f64() * TICKS * cores;
        Ok((now.busy.saturating_sub(self.busy) as f64 / there).clamp(0.0, 1.0))
    }
}

/// User, nice, system, interrupts, and what the hypervisor took; not idle and waiting.
fn busy(stat: &str) -> Option<u64> {
    let numbers = stat.lines().next()?.strip_prefix("cpu ")?;
    let numbers: Vec<u64> = numbers
        .split_whitespace()
        .map_while(|n| n.parse().ok())
        .collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = numbers[..] else {
        return None;
    };
    Some(user + nice + system + irq + softirq + steal)
}

/// Our own times and those of all who have ended and were waited for, by us or by a server of ours.
fn ours_and_our_children(stat: &str) -> Option<u64> {
    // The name is in brackets and may have anything in it.
    let (_, after_name) = stat.rsplit_once(')')?;
    let numbers = after_name.split_whitespace().skip(11).take(4);
    numbers.map(|number| number.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_what_is_neither_idle_nor_waiting() {
        let stat =
            "cpu  1 20 300 4000 50000 600000 7000000 80000000 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        assert_eq!(busy(stat), Some(87_600_321));
        assert_eq!(busy("intr 1 2\n"), None);
    }

    #[test]
    fn our_times_are_found_behind_whatever_name_we_have() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4194304 100 0 0 0 1 20 300 4000 20 0 1 0 5000";
        assert_eq!(ours_and_our_children(stat), Some(4321));
        assert_eq!(ours_and_our_children("7"), None);
    }
}
