//! Where keepers come from: the server's handle on their mother.
#![expect(
    unsafe_code,
    reason = "the clone is here, where everything it needs is at hand"
)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Signal, WaitIdOptions};

use super::command::{KeeperCommand, LaidOut};
use super::request::Request;
use super::socket;
use super::tether::{self, Refusal, Tether};
use crate::leader;
use crate::means::Tables;
use crate::strings::{HasNul, Strings};
use crate::sys::birth::{Birth, Program, Stage, Standing};
use crate::sys::clone::{self, Cloned, How};
use crate::sys::dispositions::Dispositions;
use crate::sys::mask;
use crate::sys::stack::ChildStack;

/// How long the first keeper may take to prove that all of this works here.
const TRIAL: Duration = Duration::from_secs(5);

/// How many keepers wait for another program. Making a new one takes a fork and ending one takes a
/// process's exit, which together cost as much as a small program.
const IDLE: usize = 16;

/// How long the last handle waits for keepers that are at work. Only when there are such.
const DYING: Duration = Duration::from_millis(100);

/// Every tether holds it; the last to go lets the mother end.
#[derive(Debug)]
pub(crate) struct Nest {
    command: LaidOut,
    old_call: bool,
    tables: Tables,
    /// None until the first keeper is asked for.
    mother: Mutex<Option<Handle>>,
    /// The sockets of keepers whose tether has gone while something of theirs was running.
    left: Mutex<Vec<Arc<OwnedFd>>>,
    /// The sockets of keepers that have done their work and can be given another program.
    idle: Mutex<Vec<Arc<OwnedFd>>>,
}

/// A mother that was started.
#[derive(Debug)]
struct Handle {
    /// She has the other end. When ours closes, she ends with the last of her keepers.
    socket: OwnedFd,
    pidfd: OwnedFd,
}

/// Something else than a keeper has answered, or nobody.
#[derive(Debug, thiserror::Error)]
#[error("the keeper does not answer as one")]
struct NoKeeper;

impl Nest {
    /// Starts a mother, and proves with a first keeper that everything works that will be needed.
    pub(crate) fn open(
        command: &KeeperCommand,
        old_call: bool,
        tables: Tables,
    ) -> io::Result<Arc<Self>> {
        let nest = Arc::new(Self {
            command: LaidOut::new(command)
                .map_err(|HasNul| io::Error::from(io::ErrorKind::InvalidInput))?,
            old_call,
            tables,
            mother: Mutex::new(None),
            left: Mutex::new(Vec::new()),
            idle: Mutex::new(Vec::new()),
        });
        nest.prove().inspect_err(|_| nest.disown())?;
        Ok(nest)
    }

    /// A keeper that waits for its program. It may not exist yet when this returns, and whoever is
    /// first to need it learns if it never will.
    pub(crate) fn keeper(self: &Arc<Self>) -> io::Result<Tether> {
        lock(&self.left).retain(|socket| !tether::is_gone(socket));
        let mut idle = lock(&self.idle);
        while let Some(socket) = idle.pop() {
            if !tether::is_gone(&socket) {
                return Ok(Tether::new(socket, Arc::clone(self)));
            }
        }
        drop(idle);
        let (ours, theirs) = socket::pair()?;
        let mut mother = self.mother();
        let asked = match &*mother {
            Some(handle) => socket::send(&handle.socket, &[1], &[theirs.as_fd()]),
            None => Err(Errno::PIPE),
        };
        match asked {
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => {
                if let Some(dead) = mother.take() {
                    tracing::warn!("the mother of keepers is gone; another one is started");
                    leader::ask(&dead.pidfd, WaitIdOptions::NOHANG);
                }
                let fresh = mother.insert(self.start()?);
                socket::send(&fresh.socket, &[1], &[theirs.as_fd()])?;
            }
            result => result?,
        }
        drop(mother);
        Ok(Tether::new(Arc::new(ours), Arc::clone(self)))
    }

    /// Takes over what a tether has left running.
    pub(super) fn leave(&self, socket: Arc<OwnedFd>) {
        lock(&self.left).push(socket);
    }

    /// Takes back a keeper that has done its work. If there are enough of them it may go.
    pub(super) fn give_back(&self, socket: &Arc<OwnedFd>) {
        let mut idle = lock(&self.idle);
        if idle.len() < IDLE {
            idle.push(Arc::clone(socket));
        }
    }

    /// Lets a mother go on that somebody has stopped.
    pub(super) fn nudge(&self) {
        if let Some(handle) = &*self.mother() {
            let _ = rustix::process::pidfd_send_signal(&handle.pidfd, Signal::CONT);
        }
    }

    fn start(&self) -> io::Result<Handle> {
        let (ours, theirs) = socket::pair()?;
        // Never 0, 1 or 2, so that each can be put in its place without treading on another.
        let theirs = rustix::io::fcntl_dupfd_cloexec(theirs, 3)?;
        let null = null()?;
        let streams = [theirs.as_raw_fd(), null.as_raw_fd(), null.as_raw_fd()];
        let closing = self.tables.closing();
        let birth = Birth::new(
            &self.command.program(),
            (streams, Vec::new()),
            (Standing::Session, false),
            None,
            closing,
            Dispositions::EACH,
        );
        let how = How {
            old_call: self.old_call,
            share_files: self.tables == Tables::Shared,
            ..How::default()
        };
        let (entry, argument) = birth.entry();
        let mut stack = ChildStack::new()?;
        // SAFETY: the entry of a `Birth` is made for this, and the birth outlives the clone.
        let cloned = || unsafe { clone::clone(how, &mut stack, entry, argument) };
        let Cloned { pidfd, .. } = mask::while_blocked(cloned)?;
        if let Some((_, errno)) = birth.failure() {
            leader::ask(&pidfd, WaitIdOptions::empty());
            return Err(io::Error::from_raw_os_error(errno));
        }
        Ok(Handle {
            socket: ours,
            pidfd,
        })
    }

    /// Asks for a program that isn't there: who says so has come as far as executing it.
    fn prove(self: &Arc<Self>) -> io::Result<()> {
        let (mut nowhere, mut root) = (Strings::default(), Strings::default());
        let laid_out = nowhere.push(&[b""]).and(root.push(&[b"/"]));
        debug_assert!(laid_out.is_ok(), "no NUL in either");
        let program = Program {
            candidates: &nowhere,
            argv: &nowhere,
            env: &Strings::default(),
            cwd: &root,
        };
        let request = Request::new(&program, (Standing::Group, false), None);
        let null = null()?;
        let deadline = Instant::now() + TRIAL;
        let keeper = match self.keeper() {
            // Whoever was started has gone already.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Err(io::Error::other(NoKeeper));
            }
            keeper => keeper?,
        };
        match keeper.start(&request, [null.as_fd(); 3], &[], Some(deadline)) {
            Err(Refusal::GaveUp(Stage::Execute, libc::ENOENT)) => Ok(()),
            Err(Refusal::Os(errno) | Refusal::GaveUp(_, errno) | Refusal::Unheard(Some(errno))) => {
                Err(io::Error::from_raw_os_error(errno))
            }
            Ok(_) | Err(Refusal::Gone | Refusal::Unheard(None)) => Err(io::Error::other(NoKeeper)),
        }
    }

    /// Kills what was started and isn't a mother.
    fn disown(&self) {
        if let Some(handle) = self.mother().take() {
            let _ = rustix::process::pidfd_send_signal(&handle.pidfd, Signal::KILL);
            leader::ask(&handle.pidfd, WaitIdOptions::empty());
        }
    }

    fn mother(&self) -> MutexGuard<'_, Option<Handle>> {
        lock(&self.mother)
    }
}

impl Drop for Nest {
    fn drop(&mut self) {
        let Some(Handle { socket, pidfd }) = self.mother().take() else {
            return;
        };
        drop(socket);
        lock(&self.left).clear();
        lock(&self.idle).clear();
        let timeout = Timespec::try_from(DYING).unwrap_or_default();
        let mut ended = [PollFd::new(&pidfd, PollFlags::IN)];
        let _ = rustix::event::poll(&mut ended, Some(&timeout));
        leader::ask(&pidfd, WaitIdOptions::NOHANG);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked while it held one of these has left a list or a handle, which is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn null() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let null = rustix::fs::open("/dev/null", flags, Mode::empty())?;
    Ok(rustix::io::fcntl_dupfd_cloexec(null, 3)?)
}
