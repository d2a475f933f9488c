//! The server's handle on one subreaper.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};
use rustix::process::{Pid, PidfdFlags, Signal};

use super::message::{self, ControlMessage, Report, StartRequest};
use super::pool::ReaperPool;
use super::{orphans, socket};
use crate::exit::ExitStatus;
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
    pub(super) pid: OnceLock<Pid>,
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

    /// The subreaper's pid, also if its first start has not read the report yet.
    pub(super) fn reported_pid(&self) -> Option<Pid> {
        self.pid
            .get()
            .copied()
            .or_else(|| match message::receive(&self.fd, RecvFlags::PEEK) {
                Ok(Some(Report::Ready { pid })) => Pid::from_raw(pid),
                _ => None,
            })
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
    pub(super) socket: Arc<ReaperSocket>,
    /// Keeps the factory running while one of its subreapers is.
    pub(super) pool: Arc<ReaperPool>,
    /// The subreaper is ready for another program.
    reusable: AtomicBool,
    /// The reports that were left when the subreaper was gone.
    last: OnceLock<LastReports>,
}

/// The reports that a subreaper left behind.
#[derive(Debug, Default)]
pub(super) struct LastReports {
    status: Option<ExitStatus>,
    /// No process of the tree was left.
    pub(super) tree_gone: bool,
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
            last: OnceLock::new(),
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
            // A subreaper that reads requests has reported its pid before.
            None if !delivered || self.socket.pid.get().is_none() => {
                Err(StartFailure::NotDelivered(None))
            }
            Some(Report::Exited { .. } | Report::Ready { .. } | Report::TreeGone) | None => {
                Err(StartFailure::ReaperDied)
            }
        }
    }

    /// Kills the subreaper itself, whose child hangs before `execve`. The factory then kills the child.
    pub(crate) fn kill(&self) {
        // If it was not forked yet, it reads the end of the socket instead of the request.
        let _ = rustix::net::shutdown(&*self.socket, Shutdown::Write);
        self.signal_reaper(Signal::KILL);
    }

    /// Sends a signal to the subreaper itself, if its pid is known.
    fn signal_reaper(&self, signal: Signal) {
        if let Some(pid) = self.socket.pid.get()
            && let Ok(pidfd) = rustix::process::pidfd_open(*pid, PidfdFlags::empty())
            && !self.is_gone()
        {
            // It was alive after the pidfd was opened, so its pid was not reused before.
            let _ = rustix::process::pidfd_send_signal(&pidfd, signal);
        }
    }

    /// Returns how the leader exited, and `None` while it runs. Repeated calls return the same.
    pub(crate) fn exit_status(&self) -> Option<ExitStatus> {
        if let Some(Report::Exited { status, .. }) = self.peek_report() {
            return Some(status);
        }
        // If the subreaper is gone, its report may have arrived after the call above.
        let last = || self.last_reports().status.unwrap_or(ExitStatus::LOST);
        self.is_gone().then(last)
    }

    /// Takes the reports that the subreaper left. Only after it is gone: a report that is consumed
    /// earlier would not wake the task that waits for the exit.
    pub(super) fn last_reports(&self) -> &LastReports {
        self.last.get_or_init(|| {
            let mut last = LastReports::default();
            loop {
                match message::receive(&*self.socket, RecvFlags::empty()) {
                    Ok(Some(Report::Exited { status, alone })) => {
                        last.status = Some(status);
                        last.tree_gone |= alone;
                    }
                    Ok(Some(Report::TreeGone)) => last.tree_gone = true,
                    Ok(_) | Err(Errno::CONNRESET) => {}
                    Err(_) => return last,
                }
            }
        })
    }

    /// Continues the subreaper and the factory, in case another process has stopped them.
    pub(super) fn resume(&self) {
        self.pool.resume_factory();
        self.signal_reaper(Signal::CONT);
    }

    /// Whether the leader has exited and left no descendants.
    pub(super) fn exited_alone(&self) -> bool {
        matches!(self.peek_report(), Some(Report::Exited { alone: true, .. }))
    }

    /// Kills what subreapers have left that were killed.
    pub(crate) fn kill_orphans(&self) {
        orphans::kill_all(&self.pool.orphans().unwrap_or_default());
    }

    /// Whether the subreaper is gone. Its tree is then gone too, or being killed by the factory.
    pub(super) fn is_gone(&self) -> bool {
        self.socket.is_closed()
    }

    /// Marks the subreaper as reusable, after the leader exited alone and its pid is no longer
    /// needed. Takes effect when the last reference to this handle is dropped.
    pub(super) fn set_reusable(&self) {
        if self.send(ControlMessage::Reap).is_ok() {
            // Consume the exit report, which was only peeked at so far.
            let _ = message::receive::<Report>(&*self.socket, RecvFlags::empty());
            self.reusable.store(true, Ordering::Release);
        }
    }

    /// Gives up the tree without killing it. Its processes are killed when the spawner ends.
    pub(super) fn abandon(&self) {
        if !self.is_gone() && self.send(ControlMessage::Reap).is_ok() {
            self.pool.abandoned.lock().push(Arc::clone(&self.socket));
        }
    }

    /// Sends a message. Succeeds if the subreaper is gone, because then nothing is left to do.
    pub(super) fn send(&self, message: ControlMessage) -> Result<(), Errno> {
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
