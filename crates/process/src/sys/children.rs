//! Learning about children that have no pidfd: those that a subreaper inherits.
#![expect(
    unsafe_code,
    reason = "signal sets and what waitid tells come through libc"
)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::{Pid, WaitId, WaitIdOptions};

use crate::exit::Exit;

/// Becomes readable when a child has ended or stopped.
#[derive(Debug)]
pub(crate) struct ChildSignals(OwnedFd);

impl ChildSignals {
    /// Those of the calling process. SIGCHLD has to be blocked.
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
        // SAFETY: the kernel has just made it, and nobody else knows of it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Takes what has come in; [`look`] says what it was about.
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

/// What there is to hear about children.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// It is a zombie until [`reap`].
    Ended(Pid, Exit),
    /// Only if asked for; told again and again until [`note_stop`].
    Stopped(Pid),
    /// There are children, and nothing new.
    Quiet,
    /// There are none.
    Childless,
}

/// Looks at one child that has something to tell, and changes nothing.
pub(crate) fn look(stops: bool) -> News {
    let stopped = if stops { libc::WSTOPPED } else { 0 };
    let flags = libc::WEXITED | stopped | libc::WNOHANG | libc::WNOWAIT;
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the pointer is valid for writes.
    while unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), flags) } == -1 {
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ECHILD) => return News::Childless,
            _ => return News::Quiet,
        }
    }
    // SAFETY: zeroes are a valid value, and the kernel wrote over them.
    let info = unsafe { info.assume_init() };
    // SAFETY: `waitid` fills this field; it stays zero where there is no news.
    let Some(pid) = Pid::from_raw(unsafe { info.si_pid() }) else {
        return News::Quiet;
    };
    // SAFETY: `waitid` fills this field too.
    let status = unsafe { info.si_status() };
    match info.si_code {
        libc::CLD_EXITED => News::Ended(pid, Exit::Code(status)),
        libc::CLD_KILLED | libc::CLD_DUMPED => News::Ended(pid, Exit::Signal(status)),
        _ => News::Stopped(pid),
    }
}

/// Reaps a child if it has ended; says whether it has.
pub(crate) fn reap(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    matches!(
        rustix::process::waitid(WaitId::Pid(child), options),
        Ok(Some(_))
    )
}

/// Takes note that a child has stopped.
pub(crate) fn note_stop(child: Pid) {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    let _ = rustix::process::waitid(WaitId::Pid(child), options);
}
