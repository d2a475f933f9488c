//! `waitid` with the resource usage, which the C library's function does not return.
#![expect(unsafe_code, reason = "a system call on raw pointers")]

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::process::{Pid, WaitIdOptions};

use crate::exit::{Exit, Rusage};

/// Which child to wait for.
#[derive(Copy, Clone, Debug)]
pub(crate) enum WaitFor<'a> {
    Any,
    Pidfd(BorrowedFd<'a>),
}

/// The state of a child.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waited {
    pub(crate) pid: Pid,
    /// `None` if it has only stopped.
    pub(crate) exit: Option<Exit>,
    /// The usage of the child and of all descendants that were waited for.
    pub(crate) usage: Rusage,
}

/// Waits for a child. Returns `None` if none has changed its state, with [`WaitIdOptions::NOHANG`].
pub(crate) fn waitid(which: WaitFor<'_>, options: WaitIdOptions) -> Result<Option<Waited>, Errno> {
    let (id_type, id) = match which {
        WaitFor::Any => (libc::P_ALL, 0),
        WaitFor::Pidfd(pidfd) => (libc::P_PIDFD, pidfd.as_raw_fd()),
    };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are valid for writes.
    let result = unsafe {
        libc::syscall(
            libc::SYS_waitid,
            id_type,
            id,
            info.as_mut_ptr(),
            options.bits(),
            usage.as_mut_ptr(),
        )
    };
    if result == -1 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    // SAFETY: zeroes are a valid value, and the kernel wrote over them.
    let info = unsafe { info.assume_init() };
    // SAFETY: as above.
    let usage = unsafe { usage.assume_init() };
    // SAFETY: `waitid` fills this field; it stays zero without an event.
    let Some(pid) = Pid::from_raw(unsafe { info.si_pid() }) else {
        return Ok(None);
    };
    // SAFETY: `waitid` fills this field too.
    let status = unsafe { info.si_status() };
    let micros = |time: libc::timeval| {
        time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_usec.cast_unsigned()
    };
    Ok(Some(Waited {
        pid,
        exit: match info.si_code {
            libc::CLD_EXITED => Some(Exit::Code(status)),
            libc::CLD_KILLED | libc::CLD_DUMPED => Some(Exit::Signal(status)),
            _ => None,
        },
        usage: Rusage {
            user_us: micros(usage.ru_utime),
            system_us: micros(usage.ru_stime),
            max_rss_kib: usage.ru_maxrss.cast_unsigned(),
        },
    }))
}
