//! Registers descriptors with the tokio runtime.
#![expect(
    unsafe_code,
    reason = "AsyncFd requires that a registered descriptor stays open"
)]

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::exit::ExitWaiter;

/// A registered descriptor. Its [`Arc`]s are shared by the two directions of a terminal.
pub(crate) type Registered = Arc<AsyncFd<Arc<OwnedFd>>>;

/// Registers a descriptor with the runtime of the calling task.
pub(crate) fn descriptor(
    fd: impl Into<Arc<OwnedFd>>,
    interest: Interest,
) -> io::Result<Registered> {
    // SAFETY: an `OwnedFd` is the same open descriptor until it is dropped, and the returned value
    // owns a reference to it.
    let registered = unsafe { AsyncFd::register_with_interest(fd.into(), interest) };
    registered
        .map(Arc::new)
        .map_err(|error| error.into_parts().1)
}

/// Registers the source of a child's exit status. Returns it with the error.
pub(crate) fn exit_source(
    source: ExitWaiter,
) -> Result<AsyncFd<ExitWaiter>, (ExitWaiter, io::Error)> {
    // SAFETY: an exit source keeps its `OwnedFd` until it is dropped, and the returned value owns it.
    unsafe { AsyncFd::register_with_interest(source, Interest::READABLE) }
        .map_err(|error| error.into_parts())
}

/// A descriptor registered with the runtime, for a caller that reads from it or from a duplicate.
#[derive(Debug)]
pub struct ReadableFd(Registered);

impl ReadableFd {
    /// Registers it with the runtime of the calling task.
    ///
    /// # Errors
    /// If the descriptor cannot be polled.
    pub fn new(descriptor: impl Into<Arc<OwnedFd>>) -> io::Result<Self> {
        self::descriptor(descriptor, Interest::READABLE).map(Self)
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
