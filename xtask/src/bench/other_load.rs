//! Measures the CPU usage of other programs during the benchmark.

use std::fs;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

/// Clock ticks per second in `/proc`, constant on Linux.
const TICKS: f64 = 100.0;

/// CPU ticks at one moment.
#[derive(Clone, Copy)]
pub(super) struct OtherLoad {
    at: Instant,
    /// Busy ticks of all CPUs that are not ours.
    busy: u64,
}

impl OtherLoad {
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

    /// Returns the share of all CPUs that other programs have used since then. Includes kernel
    /// threads and steal time.
    pub(super) fn share_since(self) -> Result<f64> {
        let now = Self::look()?;
        let cores = thread::available_parallelism()?.get() as f64;
        let there = (now.at - self.at).as_secs_f64() * TICKS * cores;
        Ok((now.busy.saturating_sub(self.busy) as f64 / there).clamp(0.0, 1.0))
    }
}

/// Sums user, nice, system, interrupt and steal ticks.
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

/// Ticks of this process and of all its waited-for descendants.
fn ours_and_our_children(stat: &str) -> Option<u64> {
    // The name in parentheses may contain any character.
    let (_, after_name) = stat.rsplit_once(')')?;
    let numbers = after_name.split_whitespace().skip(11).take(4);
    numbers.map(|number| number.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_iowait_are_not_busy() {
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
