//! The signal mask of a spawner thread.
#![expect(unsafe_code, reason = "signal sets are filled through libc")]

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// Blocks every signal in this thread for good. A child cloned by it starts with all of them
/// blocked and can put its handlers away before one could run in the server's memory; and the
/// server's own signals are other threads' business.
pub(crate) fn block_all() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer is valid for writes of a `sigset_t`, which this initializes.
    unsafe { libc::sigfillset(set.as_mut_ptr()) };
    // SAFETY: the set is initialized; the old mask is not asked for. The C library leaves out the
    // signals it needs itself, so that a `setuid` elsewhere doesn't wait for this thread for ever.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut()) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Lets this thread hear of its children. A signal that the program leaves at its default goes
/// nowhere then; while it is blocked in the thread that made a child, the kernel has to keep it and
/// wakes another thread for nothing.
pub(crate) fn hear_of_children() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer is valid for writes of a `sigset_t`, which this initializes.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set is initialized.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD) };
    // SAFETY: the set is initialized; the old mask is not asked for.
    match unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut()) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Does something with every signal blocked, and puts the mask back. For a clone by a thread that
/// isn't a spawner's.
pub(crate) fn while_blocked<T>(work: impl FnOnce() -> T) -> T {
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    let nothing = ptr::null();
    // SAFETY: no set is given, so that the mask is only read, into a place valid for it.
    let known =
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, nothing, before.as_mut_ptr()) } == 0;
    let blocked = known && block_all().is_ok();
    let result = work();
    if blocked {
        // SAFETY: the call above has filled it.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    }
    result
}
