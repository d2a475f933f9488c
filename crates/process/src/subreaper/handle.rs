//! The server's handle on one subreaper.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};
use rustix::process::Pid;

use super::message::{ControlMessage, LENGTH, Report};
use super::pool::ReaperPool;
use super::socket;
use super::start_request::StartRequest;
use crate::leader::WaitResult;
use crate::sys::child_setup::Stage;

/// How long to wait for a subreaper before sending SIGCONT to the factory, in case another process
/// has stopped it. If `execve` takes longer than this, the signal does no harm.
const RESUME_AFTER: Duration = Duration::from_secs(1);

/// The connection to one subreaper, shared by the process tree and the
/// [`ExitWatch`](crate::ExitWatch). When its socket closes the subreaper kills its tree.
#[derive(Debug)]
pub(crate) struct ReaperHandle {
    /// The subreaper holds the other end.
    socket: Arc<OwnedFd>,
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
    /// No process could be created.
    Os(i32),
    /// The child failed before `execve`.
    Setup(Stage, i32),
}

impl ReaperHandle {
    pub(super) fn new(socket: Arc<OwnedFd>, pool: Arc<ReaperPool>) -> Self {
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
        streams: [BorrowedFd<'_>; 3],
        passed: &[BorrowedFd<'_>],
        deadline: Option<Instant>,
    ) -> Result<Pid, StartFailure> {
        let all: Vec<_> = streams.iter().chain(passed).copied().collect();
        let mut descriptors: &[_] = &all;
        let mut delivered = true;
        for chunk in request.chunks() {
            match self.send_blocking(chunk, descriptors, deadline) {
                Ok(()) => descriptors = &[],
                Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => {
                    // The subreaper, or the factory in its place, may have left a report.
                    delivered = false;
                    break;
                }
                Err(error) => return Err(StartFailure::Os(error.raw_os_error())),
            }
        }
        match self.receive_report(&mut delivered, deadline)? {
            Some(Report::Started { pid }) => Pid::from_raw(pid).ok_or(StartFailure::ReaperDied),
            Some(Report::Failed { errno }) if delivered => Err(StartFailure::Os(errno)),
            Some(Report::Failed { errno }) => Err(StartFailure::NotDelivered(Some(errno))),
            Some(Report::SetupFailed { stage, errno }) => {
                self.reusable.store(true, Ordering::Release);
                Err(StartFailure::Setup(stage, errno))
            }
            Some(Report::Exited { .. }) => Err(StartFailure::ReaperDied),
            None if delivered => Err(StartFailure::ReaperDied),
            None => Err(StartFailure::NotDelivered(None)),
        }
    }

    /// Returns whether and how the leader exited. Repeated calls return the same.
    pub(crate) fn exit_status(&self) -> WaitResult {
        match self.peek_report() {
            Some(Report::Exited { exit, .. }) => WaitResult::Exited(exit),
            _ if self.is_gone() => match self.peek_report() {
                // The report arrived between the two calls.
                Some(Report::Exited { exit, .. }) => WaitResult::Exited(exit),
                _ => WaitResult::Lost,
            },
            _ => WaitResult::Running,
        }
    }

    /// Whether the leader has exited and left no descendants.
    pub(crate) fn exited_alone(&self) -> bool {
        matches!(self.peek_report(), Some(Report::Exited { alone: true, .. }))
    }

    /// Whether the subreaper is gone. Its tree is then gone too, or being killed by the factory.
    pub(crate) fn is_gone(&self) -> bool {
        is_gone(&self.socket)
    }

    /// Marks the subreaper as reusable, after the leader exited alone and its pid is no longer
    /// needed. Takes effect when the last reference to this handle is dropped.
    pub(crate) fn set_reusable(&self) {
        if self.send(ControlMessage::Reap).is_ok() {
            // Consume the exit report, which was only peeked at so far.
            let _ = socket::receive(&*self.socket, &mut [0; LENGTH], RecvFlags::DONTWAIT);
            self.reusable.store(true, Ordering::Release);
        }
    }

    /// Gives up the tree without killing it. Its processes are killed when the spawner ends.
    pub(crate) fn abandon(&self) {
        if !self.is_gone() && self.send(ControlMessage::Reap).is_ok() {
            self.pool.abandon(Arc::clone(&self.socket));
        }
    }

    /// Sends a message. Succeeds if the subreaper is gone, because then nothing is left to do.
    pub(crate) fn send(&self, message: ControlMessage) -> Result<(), Errno> {
        match socket::send(&*self.socket, &message.encode(), &[]) {
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => Ok(()),
            // The socket is full with hundreds of messages, so the subreaper was stopped. If it
            // continues it reads up to the end of the socket, which also means kill.
            Err(Errno::AGAIN) if message == ControlMessage::Kill => {
                rustix::net::shutdown(&*self.socket, Shutdown::Write)
            }
            result => result,
        }
    }

    fn send_blocking(
        &self,
        chunk: &[u8],
        descriptors: &[BorrowedFd<'_>],
        deadline: Option<Instant>,
    ) -> Result<(), Errno> {
        loop {
            match socket::send(&*self.socket, chunk, descriptors) {
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, deadline)?,
                result => return result,
            }
        }
    }

    /// Waits for the report on a start and consumes it. Returns `None` at the end of the socket.
    fn receive_report(
        &self,
        delivered: &mut bool,
        deadline: Option<Instant>,
    ) -> Result<Option<Report>, StartFailure> {
        loop {
            let mut bytes = [0; LENGTH];
            match socket::receive(&*self.socket, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((length, _)) => return Ok(Report::decode(&bytes[..length])),
                Err(Errno::AGAIN) => self
                    .wait(PollFlags::IN, deadline)
                    .map_err(|error| StartFailure::Os(error.raw_os_error()))?,
                // The peer closed with unread data. Returned once; received messages remain.
                Err(Errno::CONNRESET) => *delivered = false,
                Err(error) => return Err(StartFailure::Os(error.raw_os_error())),
            }
        }
    }

    /// Reads the exit report without consuming it.
    fn peek_report(&self) -> Option<Report> {
        let mut bytes = [0; LENGTH];
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        loop {
            match socket::receive(&*self.socket, &mut bytes, flags) {
                Ok((length, _)) => return Report::decode(&bytes[..length]),
                Err(Errno::CONNRESET) => {}
                Err(_) => return None,
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

impl AsFd for ReaperHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for ReaperHandle {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Whether the subreaper at the other end is gone.
pub(super) fn is_gone(socket: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(socket, PollFlags::empty())];
    let _ = rustix::event::poll(&mut fds, Some(&Timespec::default()));
    fds[0].revents().contains(PollFlags::HUP)
}
