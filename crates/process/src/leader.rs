//! The first process of a tree, and whether its number is still its own.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::command::Size;
use crate::disposition::Disposition;
use crate::exit::Exit;
use crate::terminal::{NoTerminal, Terminal};
use crate::tree::Tree;
use crate::watch::Watch;

/// What the clones of a [`Control`](crate::Control) and the [`ExitWatch`](crate::ExitWatch) share.
#[derive(Debug)]
pub(crate) struct Leader {
    pid: Pid,
    /// Whom it stands for, where that is somebody else. That number may be a stranger's one day, so
    /// it is only ever looked at.
    principal: OnceLock<Pid>,
    /// Held while a number is used and while it is given up, so that no signal can go to a
    /// stranger who got the number in between.
    state: Mutex<State>,
    tree: Tree,
    /// None on pipes. The output and the input hold the strong ends.
    terminal: Option<Weak<Terminal>>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    /// It runs or is a zombie: its number and its group's are its own.
    Unreaped,
    Reaped,
}

/// What asking for the end of a child can tell.
pub(crate) enum Ended {
    NotYet,
    With(Exit),
    /// Somebody else reaped it, or the kernel did because SIGCHLD is ignored.
    Lost,
}

impl Leader {
    pub(crate) fn new(pid: Pid, tree: Tree, terminal: Option<Weak<Terminal>>) -> Self {
        Self {
            pid,
            principal: OnceLock::new(),
            state: Mutex::new(State::Unreaped),
            tree,
            terminal,
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    pub(crate) fn stands_for(&self, other: u32) {
        if let Some(other) = Pid::from_raw(other.cast_signed()) {
            let _ = self.principal.set(other);
        }
    }

    /// Of a child that has been reaped nothing is known.
    pub(crate) fn disposition(&self, signal: crate::Signal) -> Disposition {
        match *self.lock() {
            State::Unreaped => Disposition::of(*self.principal.get().unwrap_or(&self.pid), signal),
            State::Reaped => Disposition::Default,
        }
    }

    pub(crate) fn is_pty(&self) -> bool {
        self.terminal.is_some()
    }

    pub(crate) fn signal(&self, signal: Signal) -> io::Result<bool> {
        let state = self.lock();
        if *state == State::Reaped || !self.tree.vouches() {
            return Ok(false);
        }
        if let Some(group) = self.other_foreground() {
            // It may be gone since; then nobody is left to be told.
            let _ = rustix::process::kill_process_group(group, signal);
        }
        match rustix::process::kill_process_group(self.pid, signal) {
            // A child on pipes may have moved to another group of the server's session.
            Err(Errno::SRCH) => rustix::process::kill_process(self.pid, signal)?,
            result => result?,
        }
        Ok(true)
    }

    pub(crate) fn signal_tree(&self, signal: Signal) -> io::Result<()> {
        let state = self.lock();
        let unreaped = *state == State::Unreaped && self.tree.vouches();
        self.tree.signal(self.pid, unreaped, signal)
    }

    pub(crate) fn kill_tree(&self) -> io::Result<()> {
        let state = self.lock();
        self.tree.kill(self.pid, *state == State::Unreaped)
    }

    pub(crate) fn resize(&self, size: Size) -> io::Result<()> {
        let Some(terminal) = &self.terminal else {
            return Err(io::Error::new(io::ErrorKind::Unsupported, NoTerminal));
        };
        match terminal.upgrade() {
            Some(terminal) => terminal.resize(size),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    pub(crate) fn settle(&self) {
        self.tree.settle();
    }

    pub(crate) fn has_leftovers(&self) -> bool {
        let state = self.lock();
        self.tree.is_alive(self.pid, *state == State::Unreaped)
    }

    /// Gives the number back if the child has ended; `watch` must be the child's.
    pub(crate) fn reap(&self, watch: &Watch) -> Ended {
        let mut state = self.lock();
        if *state == State::Reaped {
            return Ended::Lost;
        }
        let ended = watch.take();
        if !matches!(ended, Ended::NotYet) {
            *state = State::Reaped;
            self.tree.orphaned(self.pid);
        }
        ended
    }

    /// The terminal's foreground group, if it is a group of this session other than the leader's.
    fn other_foreground(&self) -> Option<Pid> {
        let group = self.terminal.as_ref()?.upgrade()?.foreground()?;
        if group == self.pid {
            return None;
        }
        // The terminal remembers the number of a group that has gone. If there is a process of
        // that number it tells whose it is; if there is none, nobody else can have the group.
        match rustix::process::getsid(Some(group)) {
            Ok(session) if session != self.pid => None,
            _ => Some(group),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics between two changes of a `Copy` state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks how a child ended; reaps it unless `more` says [`WaitIdOptions::NOWAIT`], and waits for it
/// unless `more` says [`WaitIdOptions::NOHANG`].
pub(crate) fn ask(pidfd: impl AsFd, more: WaitIdOptions) -> Ended {
    let child = WaitId::PidFd(pidfd.as_fd());
    loop {
        match rustix::process::waitid(child.clone(), WaitIdOptions::EXITED | more) {
            Ok(Some(status)) => return Ended::With(Exit::from_status(&status)),
            Ok(None) => return Ended::NotYet,
            Err(Errno::INTR) => {}
            Err(_) => return Ended::Lost,
        }
    }
}
