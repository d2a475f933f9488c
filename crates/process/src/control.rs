//! The handle on a child that can be shared: its pid, process tree and terminal.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock, Weak};

use outpost_types::{Signal, TerminalSize};
use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::process::{Pid, Signal as OsSignal, WaitIdOptions, kill_process, kill_process_group};

use crate::exit::{ExitStatus, ExitWaiter};
use crate::terminal::{self, NoTerminal};
use crate::tree::proc_stat;
use crate::tree::{Tree, TreeUsage};

/// Sends signals, resizes the terminal and kills the process tree of one child. The last clone to be
/// dropped releases the tree.
#[derive(Clone, Debug)]
pub struct Control(Arc<Leader>);

/// The first process of a tree. Guards its pid against reuse.
#[derive(Debug)]
struct Leader {
    pid: Pid,
    /// The process that the leader wraps, if any. Its pid may be reused, so it is only inspected and
    /// never signalled.
    wrapped_pid: OnceLock<Pid>,
    /// Whether the pid and the process group id are no longer valid. Locked while they are used and
    /// while they are released, so that no signal goes to an unrelated process that reuses them.
    reaped: Mutex<bool>,
    tree: Tree,
    /// The master of the terminal; `None` on pipes. The output and the input hold the strong
    /// references: when both are dropped it closes, which hangs up processes that still use the slave.
    terminal: Option<Weak<OwnedFd>>,
}

impl Control {
    pub(crate) fn new(pid: Pid, tree: Tree, terminal: Option<Weak<OwnedFd>>) -> Self {
        Self(Arc::new(Leader {
            pid,
            wrapped_pid: OnceLock::new(),
            reaped: Mutex::new(false),
            tree,
            terminal,
        }))
    }

    /// The child's pid, which is also its process group id. It may be reused once the child is
    /// reaped.
    pub fn pid(&self) -> u32 {
        self.0.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Whether the child runs on a terminal.
    pub fn is_pty(&self) -> bool {
        self.0.terminal.is_some()
    }

    /// Sends a signal to the child's process group, and on a terminal to the foreground process group
    /// too if that is a different one. Returns `Ok(false)` without sending if the child was reaped.
    pub fn signal(&self, signal: Signal) -> io::Result<bool> {
        let Leader { pid, tree, .. } = &*self.0;
        let reaped = self.0.reaped.lock();
        if *reaped || !tree.leader_is_ours() {
            return Ok(false);
        }
        let signal = os_signal(signal);
        if let Some(group) = self.0.other_foreground() {
            // The group may be gone by now.
            let _ = kill_process_group(group, signal);
        }
        match kill_process_group(*pid, signal) {
            // A child on pipes may have moved to another group in the server's session.
            Err(Errno::SRCH) => kill_process(*pid, signal)?,
            result => result?,
        }
        Ok(true)
    }

    /// Declares that the child only wraps the process with this pid, whose signal dispositions then
    /// count. The first call wins.
    pub fn wraps(&self, pid: u32) {
        if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
            let _ = self.0.wrapped_pid.set(pid);
        }
    }

    /// Whether the child runs beside the process that it wraps.
    pub fn is_wrapper(&self) -> bool {
        let wrapped = self.0.wrapped_pid.get();
        wrapped.is_some_and(|wrapped| *wrapped != self.0.pid)
    }

    /// The usage of the whole tree, if it is measured.
    pub(crate) fn tree_usage(&self) -> Option<TreeUsage> {
        self.0.tree.usage()
    }

    /// Whether the kernel is known to have killed a process of the tree because there was not enough
    /// memory. Only if the child has limits that a cgroup enforces.
    pub fn is_oom_killed(&self) -> bool {
        self.0.tree.is_oom_killed()
    }

    /// The disposition of a signal in the child, or in the process it wraps. Returns the default for
    /// a child that was reaped.
    pub fn disposition(&self, signal: Signal) -> Disposition {
        let reaped = self.0.reaped.lock();
        if *reaped {
            return Disposition::Default;
        }
        Disposition::of(*self.0.wrapped_pid.get().unwrap_or(&self.0.pid), signal)
    }

    /// Sends a signal to each process of the tree once: first to the child's process group, then to
    /// descendants outside it, as far as the kind of tree can find them. After the leader's exit it goes
    /// to the leftover processes.
    pub fn signal_tree(&self, signal: Signal) -> io::Result<()> {
        let Leader { pid, tree, .. } = &*self.0;
        let reaped = self.0.reaped.lock();
        let leader = (!*reaped && tree.leader_is_ours()).then_some(*pid);
        tree.signal(leader, os_signal(signal))
    }

    /// Kills the whole tree, including descendants that left the process group. After the leader's
    /// exit it kills the leftover processes, as far as the kind of tree can find them.
    pub fn kill_tree(&self) -> io::Result<()> {
        let reaped = self.0.reaped.lock();
        self.0.tree.kill((!*reaped).then_some(self.0.pid))
    }

    /// Changes the terminal's size; the system tells the foreground group. Without a terminal the
    /// error is [`io::ErrorKind::Unsupported`] and holds a [`NoTerminal`]; when the terminal is closed
    /// already it is [`io::ErrorKind::NotConnected`].
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        let Some(terminal) = &self.0.terminal else {
            return Err(io::Error::new(io::ErrorKind::Unsupported, NoTerminal));
        };
        match terminal.upgrade() {
            Some(terminal) => terminal::resize(&terminal, size),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Releases the tree's resources if no process of it is left. Cheap; may be called repeatedly.
    pub fn release_tree(&self) {
        self.0.tree.release_if_empty();
    }

    /// Whether a process of the tree is alive, including the leader.
    pub fn has_leftovers(&self) -> bool {
        let reaped = self.0.reaped.lock();
        self.0.tree.is_alive((!*reaped).then_some(self.0.pid))
    }

    /// Releases the pid if the child has exited, and returns its status. `source` must be the child's.
    pub(crate) fn reap(&self, source: &ExitWaiter) -> Option<ExitStatus> {
        let mut reaped = self.0.reaped.lock();
        if *reaped {
            return Some(ExitStatus::LOST);
        }
        let status = source.status(WaitIdOptions::empty())?;
        *reaped = true;
        self.0.tree.reap_leader(self.0.pid);
        Some(status)
    }
}

impl Leader {
    /// The terminal's foreground process group, if it is a group of this session other than the
    /// leader's.
    fn other_foreground(&self) -> Option<Pid> {
        let terminal = self.terminal.as_ref()?.upgrade()?;
        let group = rustix::termios::tcgetpgrp(&terminal).ok()?;
        if group == self.pid {
            return None;
        }
        // The terminal keeps the id of a group that is gone. If a process with that pid exists, its
        // session tells whether the id was reused; if none exists, the group cannot be another one.
        match proc_stat::read(group) {
            Some(stat) if stat.session != self.pid.as_raw_nonzero().get() => None,
            _ => Some(group),
        }
    }
}

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
    fn of(pid: Pid, signal: Signal) -> Self {
        let path = format!("/proc/{}/status", pid.as_raw_nonzero());
        let status = std::fs::read_to_string(path).unwrap_or_default();
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

/// The operating system's number of a signal.
fn os_signal(signal: Signal) -> OsSignal {
    match signal {
        Signal::Interrupt => OsSignal::INT,
        Signal::Terminate => OsSignal::TERM,
        Signal::Kill => OsSignal::KILL,
        Signal::Hangup => OsSignal::HUP,
        Signal::Quit => OsSignal::QUIT,
        Signal::Stop => OsSignal::STOP,
        Signal::Continue => OsSignal::CONT,
        Signal::User1 => OsSignal::USR1,
        Signal::User2 => OsSignal::USR2,
        Signal::WindowChange => OsSignal::WINCH,
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
