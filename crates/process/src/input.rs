//! The writing side of a child's stdin.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::terminal::Registered;

/// A terminal's default end-of-file character: Ctrl-D.
const CTRL_D: u8 = 4;

/// The writing side of a child's stdin. Dropping it closes a pipe.
#[derive(Debug)]
pub struct Input {
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    /// The child and processes that inherited from it hold the reading end.
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

    /// Writes as much as fits without blocking. Fails with [`io::ErrorKind::WouldBlock`] if nothing
    /// fits, and with [`io::ErrorKind::BrokenPipe`] if the reading end of a pipe is closed.
    ///
    /// A terminal accepts bytes even if no process has it open. In canonical mode the kernel keeps
    /// 4,095 bytes of an unfinished line and silently drops the rest.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let write = |fd: BorrowedFd<'_>| Ok(rustix::io::write(fd, bytes)?);
        match &self.sink {
            Sink::Pipe(pipe) => pipe.try_io(Interest::WRITABLE, |pipe| write(pipe.as_fd())),
            Sink::Pty(terminal) => {
                terminal.try_io(Interest::WRITABLE, |terminal| write(terminal.as_fd()))
            }
        }
    }

    /// Resolves when [`Input::try_write`] may succeed. Cancel safe.
    pub async fn writable(&self) -> io::Result<()> {
        match &self.sink {
            Sink::Pipe(pipe) => pipe.writable().await?.retain_ready(),
            Sink::Pty(terminal) => terminal.writable().await?.retain_ready(),
        }
        Ok(())
    }

    /// Closes a pipe. A terminal is only released: its end of file is a character.
    pub fn end(self) {}

    /// Whether this is a terminal.
    pub fn is_pty(&self) -> bool {
        matches!(self.sink, Sink::Pty(_))
    }

    /// The terminal's current end-of-file character.
    pub fn end_of_file_char(&self) -> u8 {
        match &self.sink {
            Sink::Pipe(_) => CTRL_D,
            Sink::Pty(terminal) => terminal.get_ref().end_of_file_char().unwrap_or(CTRL_D),
        }
    }
}
