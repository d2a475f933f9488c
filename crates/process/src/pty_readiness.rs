//! Read readiness of a PTY that can be disabled.
//!
//! A PTY delivers a few KiB at a time, and the kernel wakes its watchers for each of them. While a
//! flood is being read anyway, each wakeup would schedule a thread that finds nothing to do, and on a
//! small machine that thread takes CPU time from the child. Tokio cannot pause its own registration,
//! so tokio watches a nested epoll instance that watches the PTY, and that registration can be
//! changed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::sys::register;
use crate::terminal::Terminal;

/// Reports when a PTY is readable, unless disabled.
#[derive(Debug)]
pub(crate) struct PtyReadiness {
    epoll: AsyncFd<OwnedFd>,
    enabled: bool,
}

impl PtyReadiness {
    /// Watches this terminal, registered with the runtime of the calling task.
    pub(crate) fn new(terminal: &Terminal) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, terminal, EventData::new_u64(0), EventFlags::IN)?;
        let epoll = register::descriptor(epoll, Interest::READABLE).map_err(|(_, error)| error)?;
        Ok(Self {
            epoll,
            enabled: true,
        })
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

    /// Stops readiness events until [`PtyReadiness::enable`]. A hang-up is still reported.
    pub(crate) fn disable(&mut self, terminal: &Terminal) {
        self.set(terminal, false);
    }

    /// Resumes readiness events, with one immediately if the PTY is readable already.
    pub(crate) fn enable(&mut self, terminal: &Terminal) {
        self.set(terminal, true);
    }

    fn set(&mut self, terminal: &Terminal, enabled: bool) {
        if self.enabled == enabled {
            return;
        }
        let events = if enabled {
            EventFlags::IN
        } else {
            EventFlags::empty()
        };
        let epoll = self.epoll.get_ref().as_fd();
        if enabled {
            // The event from before `disable` is still on the kernel's ready list, and an item on
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
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::terminal::open;
    use outpost_types::TerminalSize;

    /// Much longer than the kernel takes to report readiness.
    const QUIET: Duration = Duration::from_millis(200);
    const DEADLINE: Duration = Duration::from_secs(30);

    fn read_all(readiness: &PtyReadiness, terminal: &Terminal) {
        let _ = readiness.try_io(|| {
            loop {
                rustix::io::read(terminal, &mut [0; 64])?;
            }
        });
    }

    #[tokio::test]
    async fn disabled_readiness_reports_nothing_until_enabled() {
        let size = TerminalSize { rows: 24, cols: 80 };
        let (master, slave) = open(size).expect("open a PTY");
        let terminal = Arc::new(Terminal::new(master));
        let mut readiness = PtyReadiness::new(&terminal).expect("watch the PTY");

        rustix::io::write(&slave, b"one").expect("write to the PTY");
        let ready = tokio::time::timeout(DEADLINE, readiness.ready()).await;
        ready.expect("ready after a write").expect("no I/O error");
        readiness.disable(&terminal);
        read_all(&readiness, &terminal);
        rustix::io::write(&slave, b"two").expect("write to the PTY");
        let ready = tokio::time::timeout(QUIET, readiness.ready()).await;
        assert!(ready.is_err(), "ready although disabled");

        readiness.enable(&terminal);
        let ready = tokio::time::timeout(DEADLINE, readiness.ready()).await;
        ready
            .expect("ready for what was written while disabled")
            .expect("no I/O error");
    }
}
