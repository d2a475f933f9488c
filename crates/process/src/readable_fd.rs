//! Waits for a descriptor that does not belong to a child's streams.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::sys::register;

/// A descriptor registered with the runtime, for a caller that reads from a duplicate of it.
#[derive(Debug)]
pub struct ReadableFd(AsyncFd<OwnedFd>);

impl ReadableFd {
    /// Registers it with the runtime of the calling task.
    ///
    /// # Errors
    /// If the descriptor cannot be polled.
    pub fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let registered = register::descriptor(descriptor, Interest::READABLE);
        registered.map(Self).map_err(|(_, error)| error)
    }

    /// Waits until the descriptor is readable or at its end. The caller must then read everything:
    /// the next call waits for more.
    ///
    /// # Errors
    /// If the runtime is shutting down.
    pub async fn readable(&self) -> io::Result<()> {
        self.0.readable().await?.clear_ready();
        Ok(())
    }
}
