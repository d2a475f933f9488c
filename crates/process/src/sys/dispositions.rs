//! What becomes of signals: in this program, and in a child before it is a program of its own.
#![expect(unsafe_code, reason = "dispositions come and go through libc")]

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use rustix::process::WaitIdOptions;

use super::birth::Trial;
use super::clone::{self, How};
use super::stack::ChildStack;
use crate::leader;

/// How a child gets all its signals back to their defaults. One with a handler would get there by
/// `execve`, but the handler could run in our memory before; one that is ignored would stay so.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dispositions {
    /// The clone itself takes all handlers away.
    pub(crate) cleared: bool,
    /// What the child has to put back by itself: a bit for each signal, the lowest for the first.
    pub(crate) put_back: u64,
}

impl Dispositions {
    /// What works everywhere, at a system call for each signal there is.
    pub(crate) const EACH: Self = Self {
        cleared: false,
        put_back: u64::MAX,
    };

    /// What takes least here. What this program ignores is looked up now, once: Rust's runtime and
    /// whoever started us have long decided.
    pub(crate) fn find(old_call: bool) -> io::Result<Self> {
        let how = How {
            clear_handlers: true,
            ..How::default()
        };
        if old_call {
            return Ok(Self::EACH);
        }
        let Ok(child) = clone::attempt(how, &mut ChildStack::new()?, Trial::Live) else {
            return Ok(Self::EACH);
        };
        leader::ask(&child.pidfd, WaitIdOptions::empty());
        let put_back = (0..64).filter(|bit| is_ignored(bit + 1).unwrap_or(true));
        Ok(Self {
            cleared: true,
            put_back: put_back.fold(0, |set, bit| set | 1 << bit),
        })
    }
}

/// None for the few that libc keeps for itself and tells nothing about.
fn is_ignored(signal: c_int) -> Option<bool> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is set; the pointer is valid for writes.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: zeroes are a valid value.
    let action = unsafe { action.assume_init() };
    (result == 0).then_some(action.sa_sigaction == libc::SIG_IGN)
}

/// Undoes that `SIGCHLD` is ignored, which whoever started this program may have set: the kernel
/// would reap its children, and how they ended would be lost. A program calls this for itself, at
/// its start; nothing in here does.
///
/// # Errors
/// When the system refuses.
pub fn heed_children() -> io::Result<()> {
    if is_ignored(libc::SIGCHLD) != Some(true) {
        return Ok(());
    }
    put_back(libc::SIGCHLD)
}

/// Lets an interrupt end this program again, whatever was made of it before. For a program that is
/// about to end of one, so that who started it sees what it ended of; nothing in here does.
///
/// # Errors
/// When the system refuses.
pub fn heed_interrupt() -> io::Result<()> {
    put_back(libc::SIGINT)
}

/// Whether whoever started this program wanted it to ignore interrupts, as a shell does for what it
/// puts into the background. To be asked before anything is made of them.
pub fn ignores_interrupts() -> bool {
    is_ignored(libc::SIGINT) == Some(true)
}

fn put_back(signal: c_int) -> io::Result<()> {
    // SAFETY: zeroes are a valid value: the default, no flags, an empty mask.
    let default = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    // SAFETY: the struct is valid, and a default runs no code of ours.
    match unsafe { libc::sigaction(signal, &raw const default, null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
