//! Forks a single-threaded program.
#![expect(unsafe_code, reason = "fork returns twice")]

use std::io;

use rustix::process::Pid;

/// The process in which [`fork`] returns.
pub(crate) enum Fork {
    Parent(Pid),
    Child,
}

/// Forks. Only for the subreaper factory, which has a single thread: locks held by other threads would
/// stay locked in the child.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: the only thread continues in both processes.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(Pid::from_raw(child).map_or(Fork::Child, Fork::Parent)),
    }
}
