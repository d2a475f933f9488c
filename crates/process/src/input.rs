//! The writing side of a child's stdin.

use std::io;

use rustix::termios::{self, SpecialCodeIndex};
use tokio::io::Interest;

use crate::sys::register::Registered;

/// A terminal's default end-of-file character: Ctrl-D.
const CTRL_D: u8 = 4;

/// The writing side of a child's stdin. Dropping it closes a pipe.
#[derive(Debug)]
pub struct Input {
    /// The child and processes that inherited from it hold the reading end of a pipe. A terminal is
    /// shared with the output.
    fd: Registered,
    is_pty: bool,
}

impl Input {
    pub(crate) fn new(fd: Registered, is_pty: bool) -> Self {
        Self { fd, is_pty }
    }

    /// Writes as much as fits without blocking. Fails with [`io::ErrorKind::WouldBlock`] if nothing
    /// fits, and with [`io::ErrorKind::BrokenPipe`] if the reading end of a pipe is closed.
    ///
    /// A terminal accepts bytes even if no process has it open. In canonical mode the kernel keeps
    /// 4,095 bytes of an unfinished line and silently drops the rest.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let write = |fd: &_| Ok(rustix::io::write(fd, bytes)?);
        self.fd.try_io(Interest::WRITABLE, write)
    }

    /// Resolves when [`Input::try_write`] may succeed. Cancel safe.
    pub async fn writable(&self) -> io::Result<()> {
        self.fd.writable().await?.retain_ready();
        Ok(())
    }

    /// Whether this is a terminal.
    pub fn is_pty(&self) -> bool {
        self.is_pty
    }

    /// The terminal's current end-of-file character.
    pub fn end_of_file_char(&self) -> u8 {
        let attributes = termios::tcgetattr(self.fd.get_ref());
        attributes.map_or(CTRL_D, |all| all.special_codes[SpecialCodeIndex::VEOF])
    }
}
