//! Descriptors a runtime watches.
#![expect(
    unsafe_code,
    reason = "a runtime must trust that what it watches stays open"
)]

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::terminal::{Registered, Terminal};
use crate::watch::Watch;

/// Registers a descriptor with the runtime of the calling task; it comes back with the error.
pub(crate) fn descriptor(
    fd: OwnedFd,
    interest: Interest,
) -> Result<AsyncFd<OwnedFd>, (OwnedFd, io::Error)> {
    // SAFETY: an `OwnedFd` names the same open descriptor until it is dropped, and it is owned by
    // what is returned.
    unsafe { AsyncFd::register_with_interest(fd, interest) }.map_err(|error| error.into_parts())
}

/// Registers what tells of a child's end; it comes back with the error.
pub(crate) fn watch(watch: Watch) -> Result<AsyncFd<Watch>, (Watch, io::Error)> {
    // SAFETY: a watch keeps the `OwnedFd` it was made with until it is dropped, and it is owned by
    // what is returned.
    unsafe { AsyncFd::register_with_interest(watch, Interest::READABLE) }
        .map_err(|error| error.into_parts())
}

/// Registers a terminal for writing; a [`Bell`](crate::bell::Bell) tells when it can be read.
pub(crate) fn terminal(terminal: Arc<Terminal>) -> io::Result<Registered> {
    // SAFETY: a terminal keeps the `OwnedFd` it was made with until it is dropped, and a reference
    // to it is owned by what is returned.
    let registered = unsafe { AsyncFd::register_with_interest(terminal, Interest::WRITABLE) };
    registered
        .map(Arc::new)
        .map_err(|error| error.into_parts().1)
}
