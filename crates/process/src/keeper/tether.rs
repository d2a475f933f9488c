//! The server's end of one keeper.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};
use rustix::process::Pid;

use super::message::{LENGTH, Order, Report};
use super::nest::Nest;
use super::request::Request;
use super::socket;
use crate::leader::Ended;
use crate::sys::birth::Stage;

/// How long a keeper may keep us waiting before we see to it that nobody has stopped its mother.
/// Executing a program may take longer, and then this does no harm.
const PATIENCE: Duration = Duration::from_secs(1);

/// The tree holds it and the [`ExitWatch`](crate::ExitWatch), each until it is of no more use to
/// them. When its socket closes the keeper kills everything it looks after.
#[derive(Debug)]
pub(crate) struct Tether {
    /// The keeper has the other end.
    socket: Arc<OwnedFd>,
    /// For the mother to be there as long as one of her keepers is.
    nest: Arc<Nest>,
    /// The keeper is ready for another program.
    free: AtomicBool,
}

/// Why a keeper has started nothing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It was gone before it had heard what to start, or has never been; then its mother may have said
    /// why. That may be long ago, so another may be asked.
    Unheard(Option<i32>),
    /// It went without a word. What it may have started is killed.
    Gone,
    /// There could be no process.
    Os(i32),
    /// The process gave up before it was the program.
    GaveUp(Stage, i32),
}

impl Tether {
    pub(super) fn new(socket: Arc<OwnedFd>, nest: Arc<Nest>) -> Self {
        let free = AtomicBool::new(false);
        Self { socket, nest, free }
    }

    /// Has a program started, and returns its number. Waits until it runs or the time is over.
    pub(crate) fn start(
        &self,
        request: &Request,
        streams: [BorrowedFd<'_>; 3],
        passed: &[BorrowedFd<'_>],
        deadline: Option<Instant>,
    ) -> Result<Pid, Refusal> {
        let all: Vec<_> = streams.iter().chain(passed).copied().collect();
        let mut descriptors: &[_] = &all;
        let mut heard = true;
        for piece in request.pieces() {
            match self.send(piece, descriptors, deadline) {
                Ok(()) => descriptors = &[],
                Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => {
                    // It, or its mother in its place, may have left a word.
                    heard = false;
                    break;
                }
                Err(error) => return Err(Refusal::Os(error.raw_os_error())),
            }
        }
        match self.answer(&mut heard, deadline)? {
            Some(Report::Started { pid }) => Pid::from_raw(pid).ok_or(Refusal::Gone),
            Some(Report::Refused { errno }) if heard => Err(Refusal::Os(errno)),
            Some(Report::Refused { errno }) => Err(Refusal::Unheard(Some(errno))),
            Some(Report::GaveUp { stage, errno }) => {
                self.free.store(true, Ordering::Release);
                Err(Refusal::GaveUp(stage, errno))
            }
            Some(Report::Ended { .. }) => Err(Refusal::Gone),
            None if heard => Err(Refusal::Gone),
            None => Err(Refusal::Unheard(None)),
        }
    }

    /// Whether the leader has ended; says the same however often it is asked.
    pub(crate) fn ended(&self) -> Ended {
        match self.look() {
            Some(Report::Ended { exit, .. }) => Ended::With(exit),
            _ if self.is_gone() => match self.look() {
                // It went between the two.
                Some(Report::Ended { exit, .. }) => Ended::With(exit),
                _ => Ended::Lost,
            },
            _ => Ended::NotYet,
        }
    }

    /// Whether the leader has ended and nothing else was alive then.
    pub(crate) fn ended_alone(&self) -> bool {
        matches!(self.look(), Some(Report::Ended { alone: true, .. }))
    }

    /// Whether the keeper is gone, and so everything it looked after, by itself or by its mother.
    pub(crate) fn is_gone(&self) -> bool {
        is_gone(&self.socket)
    }

    /// The program has ended alone, and its number isn't needed any more: the keeper may have
    /// another one, when the last who holds this lets go of it.
    pub(crate) fn set_free(&self) {
        if self.order(Order::Reap).is_ok() {
            // Its report, which was only looked at so far.
            let _ = socket::receive(&*self.socket, &mut [0; LENGTH], RecvFlags::DONTWAIT);
            self.free.store(true, Ordering::Release);
        }
    }

    /// Nobody will ask for it any more, and yet nothing is to be killed: what is left ends with the
    /// spawner.
    pub(crate) fn leave(&self) {
        if !self.is_gone() && self.order(Order::Reap).is_ok() {
            self.nest.leave(Arc::clone(&self.socket));
        }
    }

    /// Tells the keeper what to do. One that is gone has nothing to do any more.
    pub(crate) fn order(&self, order: Order) -> Result<(), Errno> {
        match socket::send(&*self.socket, &order.encode(), &[]) {
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => Ok(()),
            // It has hundreds of orders before it and has obeyed none, so it was stopped. It may go
            // on, and then finds the end of them all, which is an order too.
            Err(Errno::AGAIN) if order == Order::Kill => {
                rustix::net::shutdown(&*self.socket, Shutdown::Write)
            }
            result => result,
        }
    }

    fn send(
        &self,
        piece: &[u8],
        descriptors: &[BorrowedFd<'_>],
        deadline: Option<Instant>,
    ) -> Result<(), Errno> {
        loop {
            match socket::send(&*self.socket, piece, descriptors) {
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, deadline)?,
                result => return result,
            }
        }
    }

    /// The first report, which is taken off; none when there will never be one.
    fn answer(
        &self,
        heard: &mut bool,
        deadline: Option<Instant>,
    ) -> Result<Option<Report>, Refusal> {
        loop {
            let mut bytes = [0; LENGTH];
            match socket::receive(&*self.socket, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((length, _)) => return Ok(Report::decode(&bytes[..length])),
                Err(Errno::AGAIN) => self
                    .wait(PollFlags::IN, deadline)
                    .map_err(|error| Refusal::Os(error.raw_os_error()))?,
                // It was closed before all was read. Said once; what comes next is still there.
                Err(Errno::CONNRESET) => *heard = false,
                Err(error) => return Err(Refusal::Os(error.raw_os_error())),
            }
        }
    }

    /// The last report, which stays where it is.
    fn look(&self) -> Option<Report> {
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

    fn wait(&self, change: PollFlags, deadline: Option<Instant>) -> Result<(), Errno> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(Errno::TIMEDOUT);
        }
        let timeout = left.map_or(PATIENCE, |left| left.min(PATIENCE));
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        let mut watched = [PollFd::new(&*self.socket, change)];
        match rustix::event::poll(&mut watched, Some(&timeout)) {
            Ok(0) => self.nest.nudge(),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Drop for Tether {
    fn drop(&mut self) {
        if *self.free.get_mut() {
            self.nest.give_back(&self.socket);
        }
    }
}

impl AsFd for Tether {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether the keeper at the other end is gone.
pub(super) fn is_gone(socket: &OwnedFd) -> bool {
    let mut watched = [PollFd::new(socket, PollFlags::empty())];
    let _ = rustix::event::poll(&mut watched, Some(&Timespec::default()));
    watched[0].revents().contains(PollFlags::HUP)
}

impl AsRawFd for Tether {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
