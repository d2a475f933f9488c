//! Standing still until there is something to do.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::sys::children::ChildSignals;

/// Waits for a message or the end of `server`, for news of children, or for the time to pass; says
/// whether there is something on the socket.
pub(super) fn until_news(
    server: Option<impl AsFd>,
    signals: &ChildSignals,
    timeout: Option<Duration>,
) -> bool {
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let server = server.as_ref().map(AsFd::as_fd);
    let mut watched = vec![PollFd::new(signals, PollFlags::IN)];
    watched.extend(server.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
    // An error can only be one of memory, and then the caller looks for itself.
    let _ = rustix::event::poll(&mut watched, timeout.as_ref());
    watched.get(1).is_some_and(|fd| !fd.revents().is_empty())
}
