//! The supervisor's end of seccomp user notification, see seccomp_unotify(2).
#![expect(unsafe_code, reason = "these requests have no safe wrapper")]

use std::ffi::c_long;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// Receives the system calls of sandboxed processes that the filter doesn't decide about. When it is
/// closed, these calls fail with `ENOSYS`.
#[derive(Clone, Debug)]
pub(in crate::linux) struct Listener(Arc<OwnedFd>);

/// A system call that waits for its reply.
#[derive(Copy, Clone, Debug)]
pub(in crate::linux) struct Notification {
    id: u64,
    /// The thread that made the call.
    pub(in crate::linux) thread: u32,
    pub(in crate::linux) call: c_long,
    pub(in crate::linux) arguments: [u64; 6],
}

/// The result of a system call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::linux) enum Reply {
    /// The kernel executes the call, with the arguments that are then in the caller's memory.
    Continue,
    /// The supervisor performed the call.
    Done,
    /// The call fails.
    Failed(Errno),
}

/// The state of a listener.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::linux) enum Pending {
    /// A system call waits.
    Call,
    /// No system call waits now.
    Nothing,
    /// No process with the filter lives.
    Ended,
}

impl Listener {
    pub(in crate::linux) fn new(descriptor: OwnedFd) -> Self {
        Self(Arc::new(descriptor))
    }

    /// Returns the descriptor, which is readable if a system call waits.
    pub(in crate::linux) fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.0)
    }

    /// Returns the state, without waiting.
    pub(in crate::linux) fn pending(&self) -> Result<Pending, Errno> {
        let mut polled = [PollFd::new(&*self.0, PollFlags::IN)];
        let at_once = Timespec::default();
        rustix::io::retry_on_intr(|| rustix::event::poll(&mut polled, Some(&at_once)))?;
        let events = polled[0].revents();
        Ok(if events.contains(PollFlags::IN) {
            Pending::Call
        } else if events.is_empty() {
            Pending::Nothing
        } else {
            Pending::Ended
        })
    }

    /// Receives a system call. Fails with `ENOENT` if its caller was killed meanwhile. Waits if no
    /// system call was [pending](Self::pending).
    pub(in crate::linux) fn recv(&self) -> Result<Notification, Errno> {
        // SAFETY: all zeroes are a valid value, and the kernel requires them.
        let mut received: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
        // SAFETY: the request writes a notification, which has the size that is part of its number.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), request, &raw mut received) })?;
        Ok(Notification {
            id: received.id,
            thread: received.pid,
            call: received.data.nr.into(),
            arguments: received.data.args,
        })
    }

    /// Returns whether the caller still waits. Until then its thread id belongs to no other thread.
    pub(in crate::linux) fn is_valid(&self, notification: &Notification) -> bool {
        let request = libc::SECCOMP_IOCTL_NOTIF_ID_VALID;
        let id = &raw const notification.id;
        // SAFETY: the request reads an id.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), request, id) }).is_ok()
    }

    /// Ends a system call. Errors are ignored: the caller no longer waits.
    pub(in crate::linux) fn reply(&self, notification: &Notification, reply: Reply) {
        let (error, flags) = match reply {
            Reply::Continue => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
            Reply::Done => (0, 0),
            Reply::Failed(errno) => (-errno.raw_os_error(), 0),
        };
        let response = libc::seccomp_notif_resp {
            id: notification.id,
            val: 0,
            error,
            flags,
        };
        let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
        // SAFETY: the request reads a response, which has the size that is part of its number.
        let _ = unsafe { libc::ioctl(self.0.as_raw_fd(), request, &raw const response) };
    }
}

fn check(result: i32) -> Result<(), Errno> {
    match result {
        -1 => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
        _ => Ok(()),
    }
}
