//! Tells when a terminal has something to read, and can be told to be silent.
//!
//! A terminal passes on a few KiB at a time, and the kernel tells whoever watches it of each. While
//! a flood is read anyway, every one of these would wake a thread that finds nothing to do, and on
//! a small machine that thread takes its time from the child. The runtime's own watch can't be
//! paused. So it watches an instance of epoll that watches the terminal, and that one can.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::sys::register;
use crate::terminal::Terminal;

/// Rings when a terminal can be read, unless it is muted.
#[derive(Debug)]
pub(crate) struct Bell {
    watched: AsyncFd<OwnedFd>,
    muted: bool,
}

impl Bell {
    /// A bell of this terminal, registered with the runtime of the calling task.
    pub(crate) fn new(terminal: &Terminal) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, terminal, EventData::new_u64(0), EventFlags::IN)?;
        let watched =
            register::descriptor(epoll, Interest::READABLE).map_err(|(_, error)| error)?;
        Ok(Self {
            watched,
            muted: false,
        })
    }

    /// Resolves when it has rung and no [`Bell::try_io`] has found it to be spent since.
    pub(crate) async fn rung(&self) -> io::Result<()> {
        self.watched.readable().await?.retain_ready();
        Ok(())
    }

    /// Runs `read` if it has rung. An error that would block says that it has to ring again.
    pub(crate) fn try_io(&self, read: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.watched.try_io(Interest::READABLE, |_| read())
    }

    /// Doesn't ring until it is [`Bell::heed`]ed again; the end of a terminal is told nevertheless.
    pub(crate) fn mute(&mut self, terminal: &Terminal) {
        self.set(terminal, true);
    }

    /// Rings again, and at once if there is something already.
    pub(crate) fn heed(&mut self, terminal: &Terminal) {
        self.set(terminal, false);
    }

    fn set(&mut self, terminal: &Terminal, muted: bool) {
        if self.muted == muted {
            return;
        }
        let events = if muted {
            EventFlags::empty()
        } else {
            EventFlags::IN
        };
        let epoll = self.watched.get_ref().as_fd();
        if !muted {
            // The ringing before it was muted is still on the kernel's list, and what is on that
            // list doesn't ring when the watch is changed. Asking takes it off.
            let mut rung = Vec::with_capacity(1);
            let _ = epoll::wait(epoll, spare_capacity(&mut rung), Some(&Timespec::default()));
        }
        match epoll::modify(epoll, terminal, EventData::new_u64(0), events) {
            Ok(()) => self.muted = muted,
            Err(error) => tracing::warn!(%error, muted, "changing the watch on a terminal failed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::command::Size;
    use crate::terminal::open;

    /// Much longer than the kernel takes to tell of what was written.
    const QUIET: Duration = Duration::from_millis(200);
    const PATIENCE: Duration = Duration::from_secs(30);

    fn spend(bell: &Bell, terminal: &Terminal) {
        let _ = bell.try_io(|| {
            loop {
                rustix::io::read(terminal, &mut [0; 64])?;
            }
        });
    }

    #[tokio::test]
    async fn a_muted_bell_is_silent_and_rings_when_it_is_heeded() {
        let size = Size { rows: 24, cols: 80 };
        let (master, slave) = open(size).expect("a terminal");
        let terminal = Arc::new(Terminal::new(master));
        let mut bell = Bell::new(&terminal).expect("it has a bell");

        rustix::io::write(&slave, b"one").expect("it takes bytes");
        let rung = tokio::time::timeout(PATIENCE, bell.rung()).await;
        rung.expect("it rings").expect("it is watched");
        bell.mute(&terminal);
        spend(&bell, &terminal);
        rustix::io::write(&slave, b"two").expect("it takes bytes");
        let rung = tokio::time::timeout(QUIET, bell.rung()).await;
        assert!(rung.is_err(), "it rang although it was muted");

        bell.heed(&terminal);
        let rung = tokio::time::timeout(PATIENCE, bell.rung()).await;
        rung.expect("what came meanwhile is told")
            .expect("it is watched");
    }
}
