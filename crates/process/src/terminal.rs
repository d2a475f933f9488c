//! The master side of a pseudoterminal, and its readiness.

use std::io;
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::{self, InputModes, OptionalActions, Winsize};
use tokio::io::Interest;

use crate::sys::register::{self, Registered};
use outpost_types::TerminalSize;

/// The child has no terminal to resize.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the process has no terminal")]
pub struct NoTerminal;

/// Resizes the terminal of a master.
pub(crate) fn resize(master: &OwnedFd, size: TerminalSize) -> io::Result<()> {
    Ok(termios::tcsetwinsize(master, winsize(size))?)
}

/// Opens a terminal. Returns the master, which is non-blocking, and the slave.
pub(crate) fn open(size: TerminalSize) -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags)?;
    rustix::pty::unlockpt(&master)?;
    // Through the master if the kernel supports it, because `/dev/pts` may be another instance of
    // devpts.
    let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags).or_else(|_| {
        let name = rustix::pty::ptsname(&master, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::open(name, flags, Mode::empty())
    })?;
    termios::tcsetwinsize(&slave, winsize(size))?;
    let mut attributes = termios::tcgetattr(&slave)?;
    // Erasing a character during line editing then erases all bytes of its UTF-8 encoding.
    attributes.input_modes |= InputModes::IUTF8;
    termios::tcsetattr(&slave, OptionalActions::Now, &attributes)?;
    rustix::io::ioctl_fionbio(&master, true)?;
    Ok((master, slave))
}

fn winsize(size: TerminalSize) -> Winsize {
    Winsize {
        ws_row: size.rows,
        ws_col: size.cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// Reports when a PTY is readable, unless disabled.
///
/// A PTY delivers a few KiB at a time, and the kernel wakes its watchers for each of them. While a
/// flood is being read anyway, each wakeup would schedule a thread that finds nothing to do, and on a
/// small machine that thread takes CPU time from the child. Tokio cannot pause its own registration,
/// so tokio watches a nested epoll instance that watches the PTY, and that registration can be
/// changed.
#[derive(Debug)]
pub(crate) struct PtyReadiness {
    epoll: Registered,
    enabled: bool,
}

impl PtyReadiness {
    /// Watches this terminal, registered with the runtime of the calling task.
    pub(crate) fn new(terminal: &OwnedFd) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, terminal, EventData::new_u64(0), EventFlags::IN)?;
        let epoll = register::descriptor(epoll, Interest::READABLE)?;
        let enabled = true;
        Ok(Self { epoll, enabled })
    }

    /// Resolves when the PTY is readable. Stays ready until [`PtyReadiness::try_io`] finds it empty.
    pub(crate) async fn ready(&self) -> io::Result<()> {
        self.epoll.readable().await?.retain_ready();
        Ok(())
    }

    /// Runs `read` if the PTY is ready. A `WouldBlock` error clears the readiness.
    pub(crate) fn try_io(&self, read: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.epoll.try_io(Interest::READABLE, |_| read())
    }

    /// Stops readiness events, except a hang-up, or resumes them, with one immediately if the PTY is
    /// readable already.
    pub(crate) fn set_enabled(&mut self, terminal: &OwnedFd, enabled: bool) {
        if self.enabled == enabled {
            return;
        }
        let events = if enabled {
            EventFlags::IN
        } else {
            EventFlags::empty()
        };
        let epoll = self.epoll.get_ref();
        if enabled {
            // The event from before it was disabled is still on the kernel's ready list, and an item on
            // that list does not wake the outer epoll when the registration changes. `epoll_wait`
            // removes it.
            let mut ready = Vec::with_capacity(1);
            let _ = epoll::wait(
                epoll,
                spare_capacity(&mut ready),
                Some(&Timespec::default()),
            );
        }
        match epoll::modify(epoll, terminal, EventData::new_u64(0), events) {
            Ok(()) => self.enabled = enabled,
            Err(error) => {
                tracing::warn!(%error, enabled, "changing PTY read readiness failed");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Much longer than the kernel takes to report readiness.
    const QUIET: Duration = Duration::from_millis(200);
    const DEADLINE: Duration = Duration::from_secs(30);

    fn read_all(readiness: &PtyReadiness, terminal: &OwnedFd) {
        let _ = readiness.try_io(|| {
            loop {
                rustix::io::read(terminal, &mut [0; 64])?;
            }
        });
    }

    #[tokio::test]
    async fn disabled_readiness_reports_nothing_until_enabled() {
        let size = TerminalSize { rows: 24, cols: 80 };
        let (terminal, slave) = open(size).expect("open a PTY");
        let mut readiness = PtyReadiness::new(&terminal).expect("watch the PTY");

        rustix::io::write(&slave, b"one").expect("write to the PTY");
        let ready = tokio::time::timeout(DEADLINE, readiness.ready()).await;
        ready.expect("ready after a write").expect("no I/O error");
        readiness.set_enabled(&terminal, false);
        read_all(&readiness, &terminal);
        rustix::io::write(&slave, b"two").expect("write to the PTY");
        let ready = tokio::time::timeout(QUIET, readiness.ready()).await;
        assert!(ready.is_err(), "ready although disabled");

        readiness.set_enabled(&terminal, true);
        let ready = tokio::time::timeout(DEADLINE, readiness.ready()).await;
        ready
            .expect("ready for what was written while disabled")
            .expect("no I/O error");
    }
}
