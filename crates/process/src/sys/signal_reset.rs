//! Resets signal dispositions, in a child before `execve` and in this program.
#![expect(unsafe_code, reason = "calls sigaction")]

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use rustix::process::WaitIdOptions;

use super::child_setup::CloneProbe;
use super::clone::{self, CloneOptions};
use super::stack::ChildStack;
use crate::exit;

/// How a child resets all signals to their defaults. `execve` resets signals with a handler, but the
/// handler could run in the server's memory before that. It leaves ignored signals ignored.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignalReset {
    /// `CLONE_CLEAR_SIGHAND` resets all signals with a handler.
    pub(crate) by_clone: bool,
    /// The signals that the child has to reset: bit 0 for signal 1, and so on.
    pub(crate) signals: u64,
}

impl SignalReset {
    /// Works everywhere, at the cost of one system call per signal.
    pub(crate) const EACH: Self = Self {
        by_clone: false,
        signals: u64::MAX,
    };

    /// Picks the cheapest method. Looks up the ignored signals once: they were decided by this
    /// program's parent and by Rust's runtime.
    pub(crate) fn detect(legacy_clone: bool) -> io::Result<Self> {
        let options = CloneOptions {
            clear_handlers: true,
            ..CloneOptions::default()
        };
        if legacy_clone {
            return Ok(Self::EACH);
        }
        let Ok(child) = clone::probe(options, &mut ChildStack::new()?, CloneProbe::Exit) else {
            return Ok(Self::EACH);
        };
        exit::wait_pidfd(&child.pidfd, WaitIdOptions::empty());
        let ignored = (0..64).filter(|bit| is_ignored(bit + 1).unwrap_or(true));
        Ok(Self {
            by_clone: true,
            signals: ignored.fold(0, |set, bit| set | 1 << bit),
        })
    }
}

/// Returns `None` for the signals that libc reserves for itself.
fn is_ignored(signal: c_int) -> Option<bool> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is changed; the pointer is valid for writes.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: zeroes are a valid value.
    let action = unsafe { action.assume_init() };
    (result == 0).then_some(action.sa_sigaction == libc::SIG_IGN)
}

/// Restores the default of `SIGCHLD` if it is ignored, which a program can inherit from its parent.
/// While it is ignored the kernel reaps children itself and their exit status is lost. For a program to
/// call at its start; this crate never does.
///
/// # Errors
/// If `sigaction` fails.
pub fn restore_sigchld() -> io::Result<()> {
    if is_ignored(libc::SIGCHLD) != Some(true) {
        return Ok(());
    }
    restore(libc::SIGCHLD)
}

/// Restores the default of `SIGINT`. For a program that is about to kill itself with this signal, so
/// that its parent sees how it ended; this crate never does.
///
/// # Errors
/// If `sigaction` fails.
pub fn restore_sigint() -> io::Result<()> {
    restore(libc::SIGINT)
}

/// Whether this program inherited an ignored `SIGINT`, as shells set it for background jobs. Call it
/// before a handler is installed.
pub fn is_sigint_ignored() -> bool {
    is_ignored(libc::SIGINT) == Some(true)
}

/// Whether this program inherited an ignored `SIGTSTP`. Call it before a handler is installed.
pub fn is_sigtstp_ignored() -> bool {
    is_ignored(libc::SIGTSTP) == Some(true)
}

/// Stops this program as `SIGTSTP` does without a handler, and returns when it continues. Unlike
/// `SIGSTOP`, the signal has no effect in an orphaned process group, which no shell could continue;
/// see setpgid(2). The handler is the same afterwards.
///
/// # Errors
/// If `sigaction` fails.
pub fn stop_by_sigtstp() -> io::Result<()> {
    let mut handler = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is changed; the pointer is valid for writes.
    if unsafe { libc::sigaction(libc::SIGTSTP, std::ptr::null(), handler.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    restore(libc::SIGTSTP)?;
    // SAFETY: the default runs no handler. Sent to this thread, it acts before the call returns.
    unsafe { libc::raise(libc::SIGTSTP) };
    // SAFETY: the action was in effect before.
    match unsafe { libc::sigaction(libc::SIGTSTP, handler.as_ptr(), null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn restore(signal: c_int) -> io::Result<()> {
    // SAFETY: zeroes are a valid value: the default, no flags, an empty mask.
    let default = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    // SAFETY: the struct is valid, and a default runs no handler.
    match unsafe { libc::sigaction(signal, &raw const default, null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
