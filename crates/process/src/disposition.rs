//! Reads the signal dispositions of a process from `/proc`.

use std::fs;

use outpost_types::Signal;
use rustix::process::Pid;

use crate::signal::os_signal;

/// The disposition of a signal, see `signal(7)`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The kernel's default action, which is termination for most signals.
    Default,
    /// The signal is discarded.
    Ignored,
    /// The process has installed a handler.
    Caught,
}

impl Disposition {
    /// Reads `/proc/PID/status`. Returns the default if the process is gone.
    pub(crate) fn of(pid: Pid, signal: Signal) -> Self {
        let path = format!("/proc/{}/status", pid.as_raw_nonzero());
        let status = fs::read_to_string(path).unwrap_or_default();
        Self::parse(&status, signal)
    }

    fn parse(status: &str, signal: Signal) -> Self {
        let bit = 1_u64 << (os_signal(signal).as_raw() - 1);
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
    fn lowest_mask_bit_is_signal_one() {
        // SIGTERM is 15 and SIGHUP is 1.
        let status = "Name:\tsh\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000004000\n";
        let of = |signal| Disposition::parse(status, signal);
        assert_eq!(of(Signal::Terminate), Disposition::Caught);
        assert_eq!(of(Signal::Hangup), Disposition::Ignored);
        assert_eq!(of(Signal::Interrupt), Disposition::Default);
        assert_eq!(
            Disposition::parse("", Signal::Terminate),
            Disposition::Default
        );
    }
}
