//! The server's handle on one subreaper, and the process tree that it supervises.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};
use rustix::process::{Pid, PidfdFlags, Signal};

use super::message::{self, ControlMessage, Report, StartRequest};
use super::pool::ReaperPool;
use super::socket;
use crate::exit::Exit;
use crate::sys::child_setup::Stage;

/// How long to wait for a subreaper before sending SIGCONT to the factory, in case another process
/// has stopped it. If `execve` takes longer than this, the signal does no harm.
const RESUME_AFTER: Duration = Duration::from_secs(1);

/// The server's end of the socket of one subreaper, for all programs that it starts.
#[derive(Debug)]
pub(super) struct ReaperSocket {
    /// The subreaper holds the other end.
    fd: OwnedFd,
    /// The subreaper's pid, once it has reported it.
    pid: OnceLock<Pid>,
}

impl ReaperSocket {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            pid: OnceLock::new(),
        }
    }

    /// Whether the subreaper is gone.
    pub(super) fn is_closed(&self) -> bool {
        socket::is_closed(&self.fd)
    }
}

impl AsFd for ReaperSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The connection to one subreaper, shared by the process tree and the
/// [`ExitWatch`](crate::ExitWatch). When its socket closes the subreaper kills its tree.
#[derive(Debug)]
pub(crate) struct ReaperHandle {
    socket: Arc<ReaperSocket>,
    /// Keeps the factory running while one of its subreapers is.
    pool: Arc<ReaperPool>,
    /// The subreaper is ready for another program.
    reusable: AtomicBool,
}

/// Why a subreaper started no program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum StartFailure {
    /// The subreaper died before it received the whole request, or could not be forked; then the
    /// factory reported an `errno`. The failure may be old, so another subreaper may work.
    NotDelivered(Option<i32>),
    /// The subreaper died without a report. A program that it started is killed.
    ReaperDied,
    /// No child was created, or it failed before `execve`.
    Child(Stage, i32),
}

impl From<Errno> for StartFailure {
    fn from(error: Errno) -> Self {
        StartFailure::Child(Stage::Clone, error.raw_os_error())
    }
}

impl ReaperHandle {
    pub(super) fn new(socket: Arc<ReaperSocket>, pool: Arc<ReaperPool>) -> Self {
        Self {
            socket,
            pool,
            reusable: AtomicBool::new(false),
        }
    }

    /// Starts a program and returns its pid. Blocks until it runs or the deadline passes.
    pub(crate) fn start(
        &self,
        request: &StartRequest,
        fds: &[BorrowedFd<'_>],
        deadline: Option<Instant>,
    ) -> Result<Pid, StartFailure> {
        let mut descriptors = fds;
        let mut delivered = true;
        let mut chunks = request.chunks().peekable();
        while let Some(chunk) = chunks.peek() {
            match socket::send(&*self.socket, chunk, descriptors) {
                Ok(()) => {
                    chunks.next();
                    descriptors = &[];
                }
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, deadline)?,
                Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => {
                    // The subreaper, or the factory in its place, may have left a report.
                    delivered = false;
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        match self.receive_report(&mut delivered, deadline)? {
            Some(Report::Started { pid }) => Pid::from_raw(pid).ok_or(StartFailure::ReaperDied),
            Some(Report::Failed(Stage::Clone, errno)) if !delivered => {
                Err(StartFailure::NotDelivered(Some(errno)))
            }
            Some(Report::Failed(stage, errno)) => {
                let reusable = stage != Stage::Clone;
                self.reusable.store(reusable, Ordering::Release);
                Err(StartFailure::Child(stage, errno))
            }
            None if !delivered => Err(StartFailure::NotDelivered(None)),
            Some(Report::Exited { .. } | Report::Ready { .. }) | None => {
                Err(StartFailure::ReaperDied)
            }
        }
    }

    /// Kills the subreaper itself, whose child hangs before `execve`. The factory then kills the child.
    pub(crate) fn kill(&self) {
        // If it was not forked yet, it reads the end of the socket instead of the request.
        let _ = rustix::net::shutdown(&*self.socket, Shutdown::Write);
        let Some(pid) = self.socket.pid.get() else {
            return;
        };
        if let Ok(pidfd) = rustix::process::pidfd_open(*pid, PidfdFlags::empty())
            && !self.is_gone()
        {
            // It was alive after the pidfd was opened, so its pid was not reused before.
            let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
        }
    }

    /// Returns how the leader exited, and `None` while it runs. Repeated calls return the same.
    pub(crate) fn exit_status(&self) -> Option<Exit> {
        let reported = || match self.peek_report() {
            Some(Report::Exited { exit, .. }) => Some(exit),
            _ => None,
        };
        // If the subreaper is gone, its report may have arrived between the two calls.
        let lost = || reported().unwrap_or(Exit::Lost);
        reported().or_else(|| self.is_gone().then(lost))
    }

    /// Whether the leader has exited and left no descendants.
    fn exited_alone(&self) -> bool {
        matches!(self.peek_report(), Some(Report::Exited { alone: true, .. }))
    }

    /// Whether the subreaper is gone. Its tree is then gone too, or being killed by the factory.
    fn is_gone(&self) -> bool {
        self.socket.is_closed()
    }

    /// Marks the subreaper as reusable, after the leader exited alone and its pid is no longer
    /// needed. Takes effect when the last reference to this handle is dropped.
    fn set_reusable(&self) {
        if self.send(ControlMessage::Reap).is_ok() {
            // Consume the exit report, which was only peeked at so far.
            let _ = message::receive::<Report>(&*self.socket, RecvFlags::empty());
            self.reusable.store(true, Ordering::Release);
        }
    }

    /// Gives up the tree without killing it. Its processes are killed when the spawner ends.
    fn abandon(&self) {
        if !self.is_gone() && self.send(ControlMessage::Reap).is_ok() {
            self.pool.abandoned.lock().push(Arc::clone(&self.socket));
        }
    }

    /// Sends a message. Succeeds if the subreaper is gone, because then nothing is left to do.
    fn send(&self, message: ControlMessage) -> Result<(), Errno> {
        match message::send(&*self.socket, &message) {
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => Ok(()),
            // The socket is full with hundreds of messages, so the subreaper was stopped. If it
            // continues it reads up to the end of the socket, which also means kill.
            Err(Errno::AGAIN) if message == ControlMessage::Kill => {
                rustix::net::shutdown(&*self.socket, Shutdown::Write)
            }
            result => result,
        }
    }

    /// Waits for the report on a start and consumes it. Returns `None` at the end of the socket.
    fn receive_report(
        &self,
        delivered: &mut bool,
        deadline: Option<Instant>,
    ) -> Result<Option<Report>, StartFailure> {
        loop {
            match message::receive(&*self.socket, RecvFlags::empty()) {
                Ok(Some(Report::Ready { pid })) => {
                    if let Some(pid) = Pid::from_raw(pid) {
                        let _ = self.socket.pid.set(pid);
                    }
                }
                Ok(report) => return Ok(report),
                Err(Errno::PIPE) => return Ok(None),
                Err(Errno::AGAIN) => self.wait(PollFlags::IN, deadline)?,
                // The peer closed with unread data. Returned once; received messages remain.
                Err(Errno::CONNRESET) => *delivered = false,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads the exit report without consuming it.
    fn peek_report(&self) -> Option<Report> {
        loop {
            match message::receive(&*self.socket, RecvFlags::PEEK) {
                Err(Errno::CONNRESET) => {}
                report => return report.ok().flatten(),
            }
        }
    }

    fn wait(&self, events: PollFlags, deadline: Option<Instant>) -> Result<(), Errno> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(Errno::TIMEDOUT);
        }
        let timeout = left.map_or(RESUME_AFTER, |left| left.min(RESUME_AFTER));
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        let mut fds = [PollFd::new(&*self.socket, events)];
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(0) => self.pool.resume_factory(),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Drop for ReaperHandle {
    fn drop(&mut self) {
        if *self.reusable.get_mut() {
            self.pool.give_back(&self.socket);
        }
    }
}

impl AsRawFd for ReaperHandle {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.fd.as_raw_fd()
    }
}

/// The server's side of a supervised tree.
#[derive(Debug)]
pub(crate) struct SubreaperTree {
    /// `None` once the tree is gone, so that an ended tree holds no descriptor.
    reaper: Mutex<Option<Arc<ReaperHandle>>>,
}

impl SubreaperTree {
    pub(crate) fn new(reaper: Arc<ReaperHandle>) -> Self {
        Self {
            reaper: Mutex::new(Some(reaper)),
        }
    }

    /// Sends a message, unless the tree is gone.
    pub(crate) fn send(&self, message: ControlMessage) -> io::Result<()> {
        if let Some(reaper) = &*self.reaper.lock() {
            reaper.send(message)?;
        }
        Ok(())
    }

    /// Whether a process of the tree is left. With `unreaped`, a leader that has exited alone does
    /// not count.
    pub(crate) fn is_alive(&self, unreaped: bool) -> bool {
        self.release_if_empty();
        let slot = self.reaper.lock();
        slot.as_ref()
            .is_some_and(|reaper| !(unreaped && reaper.exited_alone()))
    }

    /// Whether the leader's pid cannot have been reused. If the subreaper was killed, the factory
    /// reaps the leader.
    pub(crate) fn leader_is_ours(&self) -> bool {
        let reaper = self.reaper.lock();
        reaper.as_ref().is_some_and(|reaper| !reaper.is_gone())
    }

    /// Lets the subreaper reap the leader. If the tree is empty the subreaper can be reused.
    pub(crate) fn reap_leader(&self) {
        let mut slot = self.reaper.lock();
        let Some(reaper) = &*slot else { return };
        if reaper.exited_alone() {
            reaper.set_reusable();
            *slot = None;
        } else {
            // If this fails, the zombie stays until the handle is dropped.
            let _ = reaper.send(ControlMessage::Reap);
        }
    }

    pub(crate) fn release_if_empty(&self) {
        let mut slot = self.reaper.lock();
        if slot.as_ref().is_some_and(|reaper| reaper.is_gone()) {
            *slot = None;
        }
    }
}

impl Drop for SubreaperTree {
    fn drop(&mut self) {
        if let Some(reaper) = self.reaper.get_mut().take() {
            reaper.abandon();
        }
    }
}
