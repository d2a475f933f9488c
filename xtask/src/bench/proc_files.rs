//! Memory and CPU time of a process, from `/proc`.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use super::measurement::KIB;

/// Resident memory in bytes (`VmRSS`).
pub(super) fn resident(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| path.clone())?;
    resident_in(&status).with_context(|| format!("no VmRSS in {path}"))
}

fn resident_in(status: &str) -> Option<f64> {
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * KIB)
}

/// CPU time of all threads, from `schedstat`: `stat` counts in hundredths of a second.
pub(super) fn processor_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/task");
    let mut nanoseconds = 0;
    for thread in fs::read_dir(&path).with_context(|| path.clone())? {
        let path = thread?.path().join("schedstat");
        // A thread may exit after the listing.
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let ran: u64 = first_number(&text).with_context(|| path.display().to_string())?;
        nanoseconds += ran;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_found_among_the_rest() {
        let status = "Name:\tx\nVmHWM:\t  9000 kB\nVmRSS:\t    2048 kB\nThreads:\t3\n";
        assert_eq!(resident_in(status), Some(2048.0 * KIB));
        assert_eq!(resident_in("Name:\tx\n"), None);
    }

    #[test]
    fn this_process_has_memory_and_has_run() {
        let us = std::process::id();
        assert!(resident(us).unwrap() > 0.0);
        assert!(processor_time(us).unwrap() > Duration::ZERO);
        assert_eq!(first_number("123 4 5\n"), Some(123));
    }
}
