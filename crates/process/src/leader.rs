//! The first process of a tree, and whether its pid is still valid.

use std::io;
use std::os::fd::AsFd;
use std::sync::{OnceLock, Weak};

use outpost_types::TerminalSize;
use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::disposition::Disposition;
use crate::exit::Exit;
use crate::exit_source::ExitSource;
use crate::terminal::{NoTerminal, Terminal};
use crate::tree::Tree;

/// The first process of a tree. Guards its pid against reuse. Shared by the clones of a
/// [`Control`](crate::Control) and the [`ExitWatch`](crate::ExitWatch).
#[derive(Debug)]
pub(crate) struct Leader {
    pid: Pid,
    /// The process that the leader wraps, if any. Its pid may be reused, so it is only inspected and
    /// never signalled.
    wrapped_pid: OnceLock<Pid>,
    /// Locked while the pid is used and while it is released, so that no signal goes to an unrelated
    /// process that reuses the pid.
    state: Mutex<State>,
    tree: Tree,
    /// `None` on pipes. The output and the input hold the strong references.
    terminal: Option<Weak<Terminal>>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    /// Running or a zombie: its pid and process group id are valid.
    Unreaped,
    Reaped,
}

/// The result of waiting for a child.
pub(crate) enum WaitResult {
    Running,
    Exited(Exit),
    /// Another part of the program reaped it, or the kernel did because SIGCHLD is ignored.
    Lost,
}

impl Leader {
    pub(crate) fn new(pid: Pid, tree: Tree, terminal: Option<Weak<Terminal>>) -> Self {
        Self {
            pid,
            wrapped_pid: OnceLock::new(),
            state: Mutex::new(State::Unreaped),
            tree,
            terminal,
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    pub(crate) fn wraps(&self, pid: u32) {
        if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
            let _ = self.wrapped_pid.set(pid);
        }
    }

    /// Returns the default for a child that was reaped.
    pub(crate) fn disposition(&self, signal: crate::Signal) -> Disposition {
        match *self.state.lock() {
            State::Unreaped => {
                Disposition::of(*self.wrapped_pid.get().unwrap_or(&self.pid), signal)
            }
            State::Reaped => Disposition::Default,
        }
    }

    pub(crate) fn is_pty(&self) -> bool {
        self.terminal.is_some()
    }

    pub(crate) fn signal(&self, signal: Signal) -> io::Result<bool> {
        let state = self.state.lock();
        if *state == State::Reaped || !self.tree.leader_is_ours() {
            return Ok(false);
        }
        if let Some(group) = self.other_foreground() {
            // The group may be gone by now.
            let _ = rustix::process::kill_process_group(group, signal);
        }
        match rustix::process::kill_process_group(self.pid, signal) {
            // A child on pipes may have moved to another group in the server's session.
            Err(Errno::SRCH) => rustix::process::kill_process(self.pid, signal)?,
            result => result?,
        }
        Ok(true)
    }

    pub(crate) fn signal_tree(&self, signal: Signal) -> io::Result<()> {
        let state = self.state.lock();
        let unreaped = *state == State::Unreaped && self.tree.leader_is_ours();
        self.tree.signal(self.pid, unreaped, signal)
    }

    pub(crate) fn kill_tree(&self) -> io::Result<()> {
        let state = self.state.lock();
        self.tree.kill(self.pid, *state == State::Unreaped)
    }

    pub(crate) fn resize(&self, size: TerminalSize) -> io::Result<()> {
        let Some(terminal) = &self.terminal else {
            return Err(io::Error::new(io::ErrorKind::Unsupported, NoTerminal));
        };
        match terminal.upgrade() {
            Some(terminal) => terminal.resize(size),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    pub(crate) fn release_tree(&self) {
        self.tree.release_if_empty();
    }

    pub(crate) fn has_leftovers(&self) -> bool {
        let state = self.state.lock();
        self.tree.is_alive(self.pid, *state == State::Unreaped)
    }

    /// Releases the pid if the child has exited. `source` must be the child's.
    pub(crate) fn reap(&self, source: &ExitSource) -> WaitResult {
        let mut state = self.state.lock();
        if *state == State::Reaped {
            return WaitResult::Lost;
        }
        let result = source.reap();
        if !matches!(result, WaitResult::Running) {
            *state = State::Reaped;
            self.tree.leader_reaped(self.pid);
        }
        result
    }

    /// The terminal's foreground process group, if it is a group of this session other than the
    /// leader's.
    fn other_foreground(&self) -> Option<Pid> {
        let group = self.terminal.as_ref()?.upgrade()?.foreground()?;
        if group == self.pid {
            return None;
        }
        // The terminal keeps the id of a group that is gone. If a process with that pid exists, its
        // session tells whether the id was reused; if none exists, the group cannot be another one.
        match rustix::process::getsid(Some(group)) {
            Ok(session) if session != self.pid => None,
            _ => Some(group),
        }
    }
}

/// Waits for a child and reaps it. With [`WaitIdOptions::NOWAIT`] it stays a zombie; with
/// [`WaitIdOptions::NOHANG`] this does not block.
pub(crate) fn wait_pidfd(pidfd: impl AsFd, options: WaitIdOptions) -> WaitResult {
    let child = WaitId::PidFd(pidfd.as_fd());
    loop {
        match rustix::process::waitid(child.clone(), WaitIdOptions::EXITED | options) {
            Ok(Some(status)) => return WaitResult::Exited(Exit::from_status(&status)),
            Ok(None) => return WaitResult::Running,
            Err(Errno::INTR) => {}
            Err(_) => return WaitResult::Lost,
        }
    }
}
