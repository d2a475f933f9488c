//! The server's pool of subreapers and its handle on the factory.
#![expect(unsafe_code, reason = "clones the factory process")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Signal, WaitIdOptions};

use super::command::{PreparedReaper, ReaperCommand};
use super::handle::{self, ReaperHandle, StartFailure};
use super::socket;
use super::start_request::StartRequest;
use crate::leader;
use crate::spawn_context::FdTableMode;
use crate::strings::{HasNul, Strings};
use crate::sys::child_setup::{ChildSetup, Program, SessionMode, Stage};
use crate::sys::clone::{self, CloneOptions, Cloned};
use crate::sys::mask;
use crate::sys::signal_reset::SignalReset;
use crate::sys::stack::ChildStack;

/// How long the first subreaper may take to prove that this mechanism works here.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// How many idle subreapers are kept. Forking a new one and ending one together cost as much as a
/// small program.
const MAX_IDLE: usize = 16;

/// How long dropping the pool waits for busy subreapers to kill their trees.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Starts the factory and hands out subreapers. Every [`ReaperHandle`] holds the pool; dropping the
/// last reference ends the factory.
#[derive(Debug)]
pub(crate) struct ReaperPool {
    command: PreparedReaper,
    legacy_clone: bool,
    fd_table: FdTableMode,
    /// `None` until the first subreaper is requested.
    factory: Mutex<Option<FactoryProcess>>,
    /// Sockets of subreapers whose handle was dropped while their tree was alive.
    abandoned: Mutex<Vec<Arc<OwnedFd>>>,
    /// Sockets of subreapers that are ready for another program.
    idle: Mutex<Vec<Arc<OwnedFd>>>,
}

/// A running factory.
#[derive(Debug)]
struct FactoryProcess {
    /// When this closes, the factory exits with its last subreaper.
    socket: OwnedFd,
    pidfd: OwnedFd,
}

/// The started program did not behave like a subreaper, or did not respond.
#[derive(Debug, thiserror::Error)]
#[error("the subreaper command does not run a subreaper")]
struct InvalidSubreaperCommand;

impl ReaperPool {
    /// Starts the factory, and proves with a first subreaper that the mechanism works.
    pub(crate) fn open(
        command: &ReaperCommand,
        legacy_clone: bool,
        fd_table: FdTableMode,
    ) -> io::Result<Arc<Self>> {
        let pool = Arc::new(Self {
            command: PreparedReaper::new(command)
                .map_err(|HasNul| io::Error::from(io::ErrorKind::InvalidInput))?,
            legacy_clone,
            fd_table,
            factory: Mutex::new(None),
            abandoned: Mutex::new(Vec::new()),
            idle: Mutex::new(Vec::new()),
        });
        pool.probe().inspect_err(|_| pool.kill_factory())?;
        Ok(pool)
    }

    /// Returns an idle subreaper, or requests a new one. A new one may not exist yet when this
    /// returns; if it cannot be created, its first use fails.
    pub(crate) fn get(self: &Arc<Self>) -> io::Result<ReaperHandle> {
        let is_alive = |socket: &Arc<OwnedFd>| !handle::is_gone(socket);
        self.abandoned.lock().retain(is_alive);
        let mut idle = self.idle.lock();
        while let Some(socket) = idle.pop() {
            if is_alive(&socket) {
                return Ok(ReaperHandle::new(socket, Arc::clone(self)));
            }
        }
        drop(idle);
        let (ours, theirs) = socket::pair()?;
        let mut factory = self.factory.lock();
        let sent = match &*factory {
            Some(process) => socket::send(&process.socket, &[1], &[theirs.as_fd()]),
            None => Err(Errno::PIPE),
        };
        match sent {
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => {
                if let Some(dead) = factory.take() {
                    tracing::warn!("subreaper factory died; restarting it");
                    leader::wait_pidfd(&dead.pidfd, WaitIdOptions::NOHANG);
                }
                let process = factory.insert(self.start_factory()?);
                socket::send(&process.socket, &[1], &[theirs.as_fd()])?;
            }
            result => result?,
        }
        drop(factory);
        Ok(ReaperHandle::new(Arc::new(ours), Arc::clone(self)))
    }

    /// Keeps the socket of a subreaper open whose tree is still alive.
    pub(super) fn abandon(&self, socket: Arc<OwnedFd>) {
        self.abandoned.lock().push(socket);
    }

    /// Takes back a subreaper that is ready for another program, unless enough are idle.
    pub(super) fn give_back(&self, socket: &Arc<OwnedFd>) {
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE {
            idle.push(Arc::clone(socket));
        }
    }

    /// Sends SIGCONT to the factory, in case another process has stopped it.
    pub(super) fn resume_factory(&self) {
        if let Some(process) = &*self.factory.lock() {
            let _ = rustix::process::pidfd_send_signal(&process.pidfd, Signal::CONT);
        }
    }

    fn start_factory(&self) -> io::Result<FactoryProcess> {
        let (ours, theirs) = socket::pair()?;
        // Above 2, so that `dup3` to 0, 1 and 2 does not overwrite it.
        let theirs = rustix::io::fcntl_dupfd_cloexec(theirs, 3)?;
        let null = open_null()?;
        let streams = [theirs.as_raw_fd(), null.as_raw_fd(), null.as_raw_fd()];
        let setup = ChildSetup::new(
            &self.command.program(),
            (streams, Vec::new()),
            (SessionMode::Session, false),
            None,
            self.fd_table.close_mode(),
            SignalReset::EACH,
        );
        let options = CloneOptions {
            legacy_clone: self.legacy_clone,
            share_files: self.fd_table == FdTableMode::Shared,
            ..CloneOptions::default()
        };
        let (entry, argument) = setup.entry();
        let mut stack = ChildStack::new()?;
        // SAFETY: the entry of a `ChildSetup` is made for this, and the setup outlives the clone.
        let clone = || unsafe { clone::clone(options, &mut stack, entry, argument) };
        let Cloned { pidfd, .. } = mask::with_all_blocked(clone)?;
        if let Some((_, errno)) = setup.failure() {
            leader::wait_pidfd(&pidfd, WaitIdOptions::empty());
            return Err(io::Error::from_raw_os_error(errno));
        }
        Ok(FactoryProcess {
            socket: ours,
            pidfd,
        })
    }

    /// Starts a program that does not exist. The expected error proves that everything up to
    /// `execve` works.
    fn probe(self: &Arc<Self>) -> io::Result<()> {
        let (mut missing, mut root) = (Strings::default(), Strings::default());
        let pushed = missing.push(&[b""]).and(root.push(&[b"/"]));
        debug_assert!(pushed.is_ok(), "no NUL in either");
        let program = Program {
            candidates: &missing,
            argv: &missing,
            env: &Strings::default(),
            cwd: &root,
        };
        let request = StartRequest::new(&program, (SessionMode::Group, false), None);
        let null = open_null()?;
        let deadline = Instant::now() + PROBE_TIMEOUT;
        let reaper = match self.get() {
            // The started program has exited already.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Err(io::Error::other(InvalidSubreaperCommand));
            }
            reaper => reaper?,
        };
        match reaper.start(&request, [null.as_fd(); 3], &[], Some(deadline)) {
            Err(StartFailure::Setup(Stage::Execute, libc::ENOENT)) => Ok(()),
            Err(
                StartFailure::Os(errno)
                | StartFailure::Setup(_, errno)
                | StartFailure::NotDelivered(Some(errno)),
            ) => Err(io::Error::from_raw_os_error(errno)),
            Ok(_) | Err(StartFailure::ReaperDied | StartFailure::NotDelivered(None)) => {
                Err(io::Error::other(InvalidSubreaperCommand))
            }
        }
    }

    /// Kills a process that is not a subreaper factory.
    fn kill_factory(&self) {
        if let Some(process) = self.factory.lock().take() {
            let _ = rustix::process::pidfd_send_signal(&process.pidfd, Signal::KILL);
            leader::wait_pidfd(&process.pidfd, WaitIdOptions::empty());
        }
    }
}

impl Drop for ReaperPool {
    fn drop(&mut self) {
        let Some(FactoryProcess { socket, pidfd }) = self.factory.lock().take() else {
            return;
        };
        drop(socket);
        self.abandoned.lock().clear();
        self.idle.lock().clear();
        let timeout = Timespec::try_from(SHUTDOWN_TIMEOUT).unwrap_or_default();
        let mut exited = [PollFd::new(&pidfd, PollFlags::IN)];
        let _ = rustix::event::poll(&mut exited, Some(&timeout));
        leader::wait_pidfd(&pidfd, WaitIdOptions::NOHANG);
    }
}

fn open_null() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let null = rustix::fs::open("/dev/null", flags, Mode::empty())?;
    Ok(rustix::io::fcntl_dupfd_cloexec(null, 3)?)
}
