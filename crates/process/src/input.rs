//! Where a child's input is written.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::terminal::Registered;

/// What stands for end-of-file on a terminal nobody has changed: Ctrl-D.
const CTRL_D: u8 = 4;

/// The writing side of a child's stdin. Dropping it closes a pipe.
#[derive(Debug)]
pub struct Input {
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    /// The child, or who inherited from it, holds the reading end.
    Pipe(AsyncFd<OwnedFd>),
    /// Shared with the output.
    Pty(Registered),
}

impl Input {
    pub(crate) fn pipe(pipe: AsyncFd<OwnedFd>) -> Self {
        let sink = Sink::Pipe(pipe);
        Self { sink }
    }

    pub(crate) fn pty(terminal: Registered) -> Self {
        let sink = Sink::Pty(terminal);
        Self { sink }
    }

    /// Writes what fits now. [`io::ErrorKind::WouldBlock`] when nothing does, and
    /// [`io::ErrorKind::BrokenPipe`] when nobody has a pipe's other end any more.
    ///
    /// A terminal takes bytes even when nobody has it open. In line mode it keeps 4,095 bytes of an
    /// unfinished line and cuts off what is beyond; the kernel does that silently.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let write = |fd: BorrowedFd<'_>| Ok(rustix::io::write(fd, bytes)?);
        match &self.sink {
            Sink::Pipe(pipe) => pipe.try_io(Interest::WRITABLE, |pipe| write(pipe.as_fd())),
            Sink::Pty(terminal) => {
                terminal.try_io(Interest::WRITABLE, |terminal| write(terminal.as_fd()))
            }
        }
    }

    /// Resolves when [`Input::try_write`] is worth trying. May be cancelled.
    pub async fn writable(&self) -> io::Result<()> {
        match &self.sink {
            Sink::Pipe(pipe) => pipe.writable().await?.retain_ready(),
            Sink::Pty(terminal) => terminal.writable().await?.retain_ready(),
        }
        Ok(())
    }

    /// Ends the input of a pipe. A terminal only lets go: its end of file is a character.
    pub fn end(self) {}

    /// Whether this is a terminal.
    pub fn is_pty(&self) -> bool {
        matches!(self.sink, Sink::Pty(_))
    }

    /// The character that the terminal takes for end-of-file at this moment.
    pub fn end_of_file_char(&self) -> u8 {
        match &self.sink {
            Sink::Pipe(_) => CTRL_D,
            Sink::Pty(terminal) => terminal.get_ref().end_of_file_char().unwrap_or(CTRL_D),
        }
    }
}
