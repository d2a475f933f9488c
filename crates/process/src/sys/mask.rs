//! The signal mask of a spawner thread and of its child.
#![expect(unsafe_code, reason = "signal sets are filled through libc")]

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// Blocks every signal in this thread permanently. A child cloned by it starts with all signals blocked
/// and can reset its handlers before one could run in the server's memory. Other threads handle the
/// server's own signals.
pub(crate) fn block_all() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer is valid for writes of a `sigset_t`, which this initializes.
    unsafe { libc::sigfillset(set.as_mut_ptr()) };
    // SAFETY: the set is initialized; the old mask is not returned. The C library leaves out the
    // signals that it uses internally, so that a `setuid` in another thread does not hang.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut()) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Unblocks SIGCHLD in this thread. The kernel discards an unblocked SIGCHLD with the default
/// disposition. If it were blocked in the thread that cloned the child, the kernel would queue it and
/// wake another thread for nothing.
pub(crate) fn unblock_sigchld() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer is valid for writes of a `sigset_t`, which this initializes.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set is initialized.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD) };
    // SAFETY: the set is initialized; the old mask is not returned.
    match unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut()) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Runs `work` with every signal blocked, and restores the mask. For a clone by a thread that is not a
/// spawner thread.
pub(crate) fn with_all_blocked<T>(work: impl FnOnce() -> T) -> T {
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    let nothing = ptr::null();
    // SAFETY: no set is given, so the mask is only read, into valid memory.
    let known =
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, nothing, before.as_mut_ptr()) } == 0;
    let blocked = known && block_all().is_ok();
    let result = work();
    if blocked {
        // SAFETY: the call above has initialized it.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    }
    result
}

/// Unblocks every signal, in a child before `execve`: makes a system call only.
pub(super) fn unblock_all() {
    let mask = 0_u64;
    let none = ptr::null_mut::<u64>();
    let options = libc::SIG_SETMASK;
    // SAFETY: the mask has the given length; the old one is not returned. Cannot fail.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            options,
            &raw const mask,
            none,
            8_usize,
        )
    };
}
