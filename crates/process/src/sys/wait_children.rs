//! Waits for children without a pidfd, which a subreaper inherits.
#![expect(unsafe_code, reason = "calls signalfd")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions};

use super::waitid::{WaitFor, Waited, waitid};
use crate::exit::ExitStatus;

/// A signalfd that is readable when a child has exited or stopped.
#[derive(Debug)]
pub(crate) struct ChildSignals(OwnedFd);

impl ChildSignals {
    /// Opens it for the calling process. SIGCHLD must be blocked.
    pub(crate) fn open() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the pointer is valid for writes of a `sigset_t`, which this initializes.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: the set is initialized.
        unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD) };
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the set is initialized; -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, set.as_ptr(), flags) };
        if fd == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and not used elsewhere.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Consumes pending signals. [`peek`] returns the events.
    pub(crate) fn clear(&self) {
        let mut buffer = [0; 8 * size_of::<libc::signalfd_siginfo>()];
        while rustix::io::read(&self.0, &mut buffer).is_ok() {}
    }
}

impl AsFd for ChildSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The next event of a child.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChildEvent {
    /// The child has exited, and is a zombie until [`reap`].
    Exited(Pid, ExitStatus),
    /// The child was stopped. Only if requested. Returned repeatedly until [`consume_stop`].
    Stopped(Pid),
    /// There are children, but no event.
    None,
    /// There are no children.
    NoChildren,
}

/// Returns an event without consuming it.
pub(crate) fn peek(stops: bool) -> ChildEvent {
    let mut options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    options.set(WaitIdOptions::STOPPED, stops);
    loop {
        return match waitid(WaitFor::Any, options) {
            Ok(Some(Waited { pid, exit, usage })) => match exit {
                Some(exit) => ChildEvent::Exited(
                    pid,
                    ExitStatus {
                        exit,
                        usage: Some(usage),
                    },
                ),
                None => ChildEvent::Stopped(pid),
            },
            Err(Errno::INTR) => continue,
            Err(Errno::CHILD) => ChildEvent::NoChildren,
            Ok(None) | Err(_) => ChildEvent::None,
        };
    }
}

/// Reaps a child if it has exited, and returns whether it has.
pub(crate) fn reap(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    matches!(
        rustix::process::waitid(WaitId::Pid(child), options),
        Ok(Some(_))
    )
}

/// Consumes the stop event of a child.
pub(crate) fn consume_stop(child: Pid) {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    let _ = rustix::process::waitid(WaitId::Pid(child), options);
}
