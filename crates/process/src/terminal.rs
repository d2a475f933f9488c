//! The master side of a pseudoterminal.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
use rustix::pty::OpenptFlags;
use rustix::termios::{self, InputModes, OptionalActions, SpecialCodeIndex, Winsize};
use tokio::io::unix::AsyncFd;

use outpost_types::TerminalSize;

/// The child has no terminal to resize.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the process has no terminal")]
pub struct NoTerminal;

/// The master side, shared by the [`Output`](crate::Output) and the [`Input`](crate::Input). When both
/// are dropped it closes, which hangs up processes that still use the slave. The
/// [`Control`](crate::Control) holds a weak reference, so that a finished process keeps no descriptor.
#[derive(Debug)]
pub(crate) struct Terminal {
    master: OwnedFd,
}

/// A terminal registered with a runtime.
pub(crate) type Registered = Arc<AsyncFd<Arc<Terminal>>>;

impl Terminal {
    pub(crate) fn new(master: OwnedFd) -> Self {
        Self { master }
    }

    pub(crate) fn resize(&self, size: TerminalSize) -> io::Result<()> {
        Ok(termios::tcsetwinsize(&self.master, winsize(size))?)
    }

    /// The foreground process group, or `None` if the session is gone.
    pub(crate) fn foreground(&self) -> Option<Pid> {
        termios::tcgetpgrp(&self.master).ok()
    }

    /// The current end-of-file character.
    pub(crate) fn end_of_file_char(&self) -> Option<u8> {
        let attributes = termios::tcgetattr(&self.master).ok()?;
        Some(attributes.special_codes[SpecialCodeIndex::VEOF])
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }
}

impl AsRawFd for Terminal {
    fn as_raw_fd(&self) -> RawFd {
        self.master.as_raw_fd()
    }
}

/// Opens a terminal. Returns the master, which is non-blocking, and the slave.
pub(crate) fn open(size: TerminalSize) -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let master = open_master()?;
    rustix::pty::unlockpt(&master)?;
    let slave = open_slave(&master)?;
    termios::tcsetwinsize(&slave, winsize(size))?;
    let mut attributes = termios::tcgetattr(&slave)?;
    // Erasing a character during line editing then erases all bytes of its UTF-8 encoding.
    attributes.input_modes |= InputModes::IUTF8;
    termios::tcsetattr(&slave, OptionalActions::Now, &attributes)?;
    rustix::io::ioctl_fionbio(&master, true)?;
    Ok((master, slave))
}

fn open_master() -> rustix::io::Result<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    rustix::pty::openpt(flags)
}

/// Opens the slave through the master if the kernel supports it, because `/dev/pts` may be another
/// instance of devpts.
fn open_slave(master: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    rustix::pty::ioctl_tiocgptpeer(master, flags).or_else(|_| {
        let name = rustix::pty::ptsname(master, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::open(name, flags, Mode::empty())
    })
}

fn winsize(size: TerminalSize) -> Winsize {
    Winsize {
        ws_row: size.rows,
        ws_col: size.cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}
