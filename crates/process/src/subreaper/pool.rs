//! The server's pool of subreapers and its handle on the factory.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitIdOptions};

use super::handle::{ReaperHandle, ReaperSocket, StartFailure};
use super::message::StartRequest;
use super::orphans::{self, SubreaperRole};
use super::socket;
use crate::exit;
use crate::program::Program;
use crate::sys::child_setup::{ChildSetup, SessionMode, Stage};
use crate::sys::child_slot::ChildSlot;
use crate::sys::clone_mode::CloneMode;
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

/// A program that does nothing but call [`subreaper::main`](super::main) before it has a second
/// thread.
///
/// If a program can run itself in this mode, use `/proc/self/exe`: it still names the same executable
/// after the file was replaced by another version.
#[derive(Clone, Debug)]
pub struct ReaperCommand {
    /// The path of the executable; no `PATH` is searched.
    pub program: PathBuf,
    /// The arguments.
    pub args: Vec<OsString>,
}

/// Starts the factory and hands out subreapers. Every [`ReaperHandle`] holds the pool; dropping the
/// last reference ends the factory.
#[derive(Debug)]
pub(crate) struct ReaperPool {
    program: Program,
    clone_mode: CloneMode,
    /// `None` until the first subreaper is requested.
    factory: Mutex<Option<FactoryProcess>>,
    /// Sockets of subreapers whose handle was dropped while their tree was alive.
    pub(super) abandoned: Mutex<Vec<Arc<ReaperSocket>>>,
    /// Sockets of subreapers that are ready for another program.
    idle: Mutex<Vec<Arc<ReaperSocket>>>,
    /// Set if this process inherits the orphans of a killed factory.
    adoption: Option<SubreaperRole>,
    /// The subreapers, which are not taken for orphans. Empty without adoption.
    reapers: Mutex<KnownReapers>,
}

/// The subreapers that have a handle or are idle.
#[derive(Debug, Default)]
struct KnownReapers(Vec<Weak<ReaperSocket>>);

impl KnownReapers {
    fn add(&mut self, socket: &Arc<ReaperSocket>) {
        self.0.retain(|socket| socket.strong_count() > 0);
        self.0.push(Arc::downgrade(socket));
    }

    fn pids(&self) -> HashSet<Pid> {
        let sockets = self.0.iter().filter_map(Weak::upgrade);
        sockets.filter_map(|socket| socket.reported_pid()).collect()
    }
}

/// A running factory.
#[derive(Debug)]
struct FactoryProcess {
    /// When this closes, the factory exits with its last subreaper.
    socket: OwnedFd,
    pidfd: OwnedFd,
    pid: Pid,
}

/// The started program did not behave like a subreaper, or did not respond.
#[derive(Debug, thiserror::Error)]
#[error("the subreaper command does not run a subreaper")]
struct InvalidSubreaperCommand;

impl ReaperPool {
    /// Starts the factory, and proves with a first subreaper that the mechanism works.
    pub(crate) fn open(
        command: &ReaperCommand,
        clone_mode: CloneMode,
        adopts_orphans: bool,
    ) -> io::Result<Arc<Self>> {
        let pool = Arc::new(Self {
            program: prepare(command)?,
            clone_mode: CloneMode {
                signal_reset: SignalReset::EACH,
                // The factory raises its own.
                raise_oom_score: false,
                ..clone_mode
            },
            factory: Mutex::new(None),
            abandoned: Mutex::new(Vec::new()),
            idle: Mutex::new(Vec::new()),
            adoption: adopts_orphans.then(SubreaperRole::begin).flatten(),
            reapers: Mutex::default(),
        });
        let probed = pool.probe();
        if probed.is_err()
            && let Some(process) = pool.factory.lock().take()
        {
            // It is not a subreaper factory.
            let _ = rustix::process::pidfd_send_signal(&process.pidfd, Signal::KILL);
            exit::wait_pidfd(&process.pidfd, WaitIdOptions::empty());
        }
        probed.map(|()| pool)
    }

    /// Returns an idle subreaper, or requests a new one. A new one may not exist yet when this
    /// returns; if it cannot be created, its first use fails.
    pub(crate) fn get(self: &Arc<Self>) -> io::Result<ReaperHandle> {
        self.end_adopted();
        let is_alive = |socket: &Arc<ReaperSocket>| !socket.is_closed();
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
                    exit::wait_pidfd(&dead.pidfd, WaitIdOptions::NOHANG);
                }
                let process = factory.insert(self.start_factory()?);
                socket::send(&process.socket, &[1], &[theirs.as_fd()])?;
            }
            result => result?,
        }
        drop(factory);
        let socket = Arc::new(ReaperSocket::new(ours));
        if self.adoption.is_some() {
            self.reapers.lock().add(&socket);
        }
        Ok(ReaperHandle::new(socket, Arc::clone(self)))
    }

    /// Takes back a subreaper that is ready for another program, unless enough are idle.
    pub(super) fn give_back(&self, socket: &Arc<ReaperSocket>) {
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

    /// Finds the processes that were inherited from killed subreapers, with their descendants, and opens
    /// their pidfds. `None` while the factory exits.
    pub(super) fn orphans(&self) -> Option<Vec<OwnedFd>> {
        let factory = self.factory_pid();
        let mut found = factory.map_or_else(|| Some(Vec::new()), orphans::of_factory)?;
        if let Some(adoption) = &self.adoption {
            found.extend(adoption.orphans(&self.own_children()));
        }
        Some(orphans::with_descendants(found))
    }

    /// Kills what this process has inherited from subreapers that were killed, and reaps zombies, from time
    /// to time.
    fn end_adopted(&self) {
        if let Some(adoption) = &self.adoption
            && adoption.is_due(|| self.own_children())
        {
            orphans::kill_all(&self.orphans().unwrap_or_default());
        }
    }

    fn factory_pid(&self) -> Option<Pid> {
        self.factory.lock().as_ref().map(|process| process.pid)
    }

    /// The factory and the subreapers.
    fn own_children(&self) -> HashSet<Pid> {
        let mut own = self.reapers.lock().pids();
        own.extend(self.factory_pid());
        own
    }

    fn start_factory(&self) -> io::Result<FactoryProcess> {
        let (ours, theirs) = socket::pair()?;
        // Above 2, so that `dup3` to 0, 1 and 2 does not overwrite it.
        let theirs = rustix::io::fcntl_dupfd_cloexec(theirs, 3)?;
        let null = open_null()?;
        let streams = [theirs.as_raw_fd(), null.as_raw_fd(), null.as_raw_fd()];
        let slot = ChildSlot::new();
        let setup = ChildSetup::new(&self.program, streams.into(), self.clone_mode, &slot);
        let mut stack = ChildStack::new()?;
        let started = mask::with_all_blocked(|| setup.start(None, &mut stack));
        let started = started.map_err(|(_, errno)| io::Error::from_raw_os_error(errno))?;
        Ok(FactoryProcess {
            socket: ours,
            pidfd: started.pidfd,
            pid: started.pid,
        })
    }

    /// Starts a program that does not exist. The expected error proves that everything up to
    /// `execve` works.
    fn probe(self: &Arc<Self>) -> io::Result<()> {
        let mut program = Program::default();
        program.candidates.push(&[b""])?;
        program.cwd.push(&[b"/"])?;
        let request = StartRequest::new(&program).ok_or(Errno::TOOBIG)?;
        let null = open_null()?;
        let deadline = Instant::now() + PROBE_TIMEOUT;
        let invalid = || io::Error::other(InvalidSubreaperCommand);
        let reaper = match self.get() {
            // The started program has exited already.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(invalid()),
            reaper => reaper?,
        };
        match reaper.start(&request, &[null.as_fd(); 3], Some(deadline)) {
            Err(StartFailure::Child(Stage::Execute, libc::ENOENT)) => Ok(()),
            Err(StartFailure::Child(_, errno) | StartFailure::NotDelivered(Some(errno))) => {
                Err(io::Error::from_raw_os_error(errno))
            }
            Ok(_) | Err(StartFailure::ReaperDied | StartFailure::NotDelivered(None)) => {
                Err(invalid())
            }
        }
    }
}

impl Drop for ReaperPool {
    fn drop(&mut self) {
        let Some(FactoryProcess { socket, pidfd, .. }) = self.factory.lock().take() else {
            return;
        };
        drop(socket);
        self.abandoned.lock().clear();
        self.idle.lock().clear();
        let timeout = Timespec::try_from(SHUTDOWN_TIMEOUT).unwrap_or_default();
        let mut exited = [PollFd::new(&pidfd, PollFlags::IN)];
        let _ = rustix::event::poll(&mut exited, Some(&timeout));
        exit::wait_pidfd(&pidfd, WaitIdOptions::NOHANG);
    }
}

fn open_null() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let null = rustix::fs::open("/dev/null", flags, Mode::empty())?;
    Ok(rustix::io::fcntl_dupfd_cloexec(null, 3)?)
}

/// Prepares the command for `execve`. The subreaper keeps the server's working directory: programs may
/// be started in a directory relative to it, and the server may be in a directory that cannot be entered
/// again.
fn prepare(command: &ReaperCommand) -> io::Result<Program> {
    let mut prepared = Program {
        session_mode: SessionMode::Session,
        ..Program::default()
    };
    let program = command.program.as_os_str();
    prepared.candidates.push(&[program.as_bytes()])?;
    // Shown in process lists under the server's own name.
    let name = std::env::args_os().next();
    let name = name.unwrap_or_else(|| program.to_owned());
    for argument in std::iter::once(&name).chain(&command.args) {
        prepared.argv.push(&[argument.as_bytes()])?;
    }
    // Pass on only the variables of the dynamic loader. The rest is of no use to a subreaper, and
    // tools that search /proc/*/environ should not find it there.
    for (name, value) in std::env::vars_os() {
        if name.as_bytes().starts_with(b"LD_") {
            let variable = [name.as_bytes(), b"=", value.as_bytes()];
            prepared.env.push(&variable)?;
        }
    }
    Ok(prepared)
}
