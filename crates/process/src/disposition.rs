//! What a process does with a signal.

use std::fs;

use rustix::process::Pid;

use crate::signal::Signal;

/// What becomes of a signal that is sent to a process.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// What the system does with it, most often the end.
    Default,
    /// Nothing.
    Ignored,
    /// A handler of its own runs.
    Caught,
}

impl Disposition {
    /// What `/proc` says; default where it says nothing, as of a process that has gone.
    pub(crate) fn of(pid: Pid, signal: Signal) -> Self {
        let path = format!("/proc/{}/status", pid.as_raw_nonzero());
        let status = fs::read_to_string(path).unwrap_or_default();
        Self::in_status(&status, signal)
    }

    fn in_status(status: &str, signal: Signal) -> Self {
        let bit = 1_u64 << (signal.os().as_raw() - 1);
        let has = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
            mask.is_some_and(|mask| mask & bit != 0)
        };
        if has("SigCgt:") {
            Self::Caught
        } else if has("SigIgn:") {
            Self::Ignored
        } else {
            Self::Default
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_masks_count_from_one() {
        // SIGTERM is 15 and SIGHUP is 1.
        let status = "Name:\tsh\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000004000\n";
        let of = |signal| Disposition::in_status(status, signal);
        assert_eq!(of(Signal::Terminate), Disposition::Caught);
        assert_eq!(of(Signal::Hangup), Disposition::Ignored);
        assert_eq!(of(Signal::Interrupt), Disposition::Default);
        assert_eq!(
            Disposition::in_status("", Signal::Terminate),
            Disposition::Default
        );
    }
}
