//! Waits for events in the factory and in subreapers.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::sys::children::ChildSignals;

/// Waits for a message or hang-up on `server`, for a child event, or for the timeout. Returns whether
/// the socket is ready.
pub(super) fn wait(
    server: Option<impl AsFd>,
    signals: &ChildSignals,
    timeout: Option<Duration>,
) -> bool {
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let server = server.as_ref().map(AsFd::as_fd);
    let mut fds = vec![PollFd::new(signals, PollFlags::IN)];
    fds.extend(server.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
    // Only ENOMEM is possible; the caller's non-blocking checks follow in any case.
    let _ = rustix::event::poll(&mut fds, timeout.as_ref());
    fds.get(1).is_some_and(|fd| !fd.revents().is_empty())
}
