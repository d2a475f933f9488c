//! Waiting for a descriptor that has nothing to do with a child's streams.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::sys::register;

/// A descriptor that the runtime watches, for somebody who reads from a copy of it.
#[derive(Debug)]
pub struct Watched(AsyncFd<OwnedFd>);

impl Watched {
    /// Registers it with the runtime of the calling task.
    ///
    /// # Errors
    /// When it is of a kind that can't be waited for.
    pub fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let registered = register::descriptor(descriptor, Interest::READABLE);
        registered.map(Self).map_err(|(_, error)| error)
    }

    /// Waits until there is something to read, or the end. Whoever is told takes all of it: the
    /// next call waits for more.
    ///
    /// # Errors
    /// When the runtime is going down.
    pub async fn readable(&self) -> io::Result<()> {
        self.0.readable().await?.clear_ready();
        Ok(())
    }
}
