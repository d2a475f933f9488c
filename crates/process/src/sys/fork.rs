//! A copy of a program that has one thread only.
#![expect(unsafe_code, reason = "fork returns twice")]

use std::io;

use rustix::process::Pid;

/// On which side of a fork one is.
pub(crate) enum Fork {
    Parent(Pid),
    Child,
}

/// Forks. Only for the mother of keepers, which starts no second thread: what other threads hold at
/// this moment, locks above all, would be held in the copy for ever.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: the one thread there is goes on in both, with everything as it was.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(Pid::from_raw(child).map_or(Fork::Child, Fork::Parent)),
    }
}
