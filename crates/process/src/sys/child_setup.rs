//! The code that a child runs between clone and `execve`.
//!
//! The child shares the server's memory and the spawner thread's TLS: it makes system calls only, and
//! must not allocate, lock or panic. Everything it needs is prepared before the clone.
#![expect(
    unsafe_code,
    reason = "system calls on raw pointers, in a cloned process"
)]

use std::convert::Infallible;
use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use rustix::process::WaitIdOptions;
use serde::{Deserialize, Serialize};

use super::child_slot::ChildSlot;
use super::clone::{self, CloneOptions, Cloned, Entry};
use super::clone_mode::{CloneMode, CloseMode};
use super::mask;
use super::stack::ChildStack;
use super::write_oom_score;
use crate::exit;
use crate::oom_score;
use crate::program::Program;

/// Everything one child needs, and where it reports a failure.
pub(crate) struct ChildSetup<'a> {
    program: &'a Program,
    /// Become descriptors 0 and up. Each is above all targets, so no `dup3` overwrites a source.
    fds: Vec<RawFd>,
    limits: [Option<(u32, libc::rlimit64)>; 3],
    /// Null to keep the working directory.
    cwd: *const c_char,
    candidates: Vec<*const c_char>,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    mode: CloneMode,
    /// Empty if the child inherits the right one.
    oom_score: String,
    /// Set by the child when it has the right score.
    has_oom_score: AtomicBool,
    /// The highest open descriptor, for [`CloseMode::Each`].
    highest: RawFd,
    /// Where other threads find the child and its step.
    slot: &'a ChildSlot,
    /// Written by the child, read by the thread that cloned it: a [`Stage`], then an `errno`.
    failure: [AtomicI32; 2],
}

/// Which process group or session a child leads.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SessionMode {
    /// A new process group.
    #[default]
    Group,
    /// A new session, without a terminal.
    Session,
    /// A new session, whose controlling terminal is the first descriptor.
    Terminal,
    /// A new session, whose controlling terminal is the last descriptor.
    PassedTerminal,
}

/// The step in which a child failed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stage {
    Group = 1,
    Terminal,
    Descriptors,
    Limits,
    Directory,
    Execute,
    /// No child was created.
    Clone,
}

impl Stage {
    /// Returns `None` for zero, which means success.
    pub(super) fn from_number(number: i32) -> Option<Self> {
        Some(match number {
            0 => return None,
            1 => Stage::Group,
            2 => Stage::Terminal,
            3 => Stage::Descriptors,
            4 => Stage::Limits,
            5 => Stage::Directory,
            _ => Stage::Execute,
        })
    }
}

type Step = Result<c_long, (Stage, i32)>;

impl<'a> ChildSetup<'a> {
    /// Prepares a program that gets these descriptors, from 0 on.
    pub(crate) fn new(
        program: &'a Program,
        fds: Vec<RawFd>,
        mode: CloneMode,
        slot: &'a ChildSlot,
    ) -> Self {
        Self {
            program,
            slot,
            fds,
            limits: program.rlimits.raw(),
            cwd: program.cwd.pointers()[0],
            candidates: program.candidates.pointers(),
            argv: program.argv.pointers(),
            env: program.env.pointers(),
            mode,
            oom_score: match mode.raise_oom_score {
                true => oom_score::of_children(),
                false => String::new(),
            },
            has_oom_score: AtomicBool::new(!mode.raise_oom_score),
            highest: match mode.close_mode {
                CloseMode::Each => highest_descriptor(),
                CloseMode::Unshare | CloseMode::Range => 0,
            },
            failure: [AtomicI32::new(0), AtomicI32::new(0)],
        }
    }

    /// The out-of-memory score that the child needs and could not set itself.
    pub(crate) fn missing_oom_score(&self) -> Option<&str> {
        let has_score = self.has_oom_score.load(Ordering::Acquire);
        (!has_score).then_some(self.oom_score.as_str())
    }

    /// Clones the child, into the cgroup if there is one, and returns when it runs the program or has
    /// failed and exited.
    pub(crate) fn start(
        &self,
        cgroup: Option<BorrowedFd<'_>>,
        stack: &mut ChildStack,
    ) -> Result<Cloned, (Stage, i32)> {
        let options = CloneOptions {
            legacy_clone: self.mode.legacy_clone,
            share_files: self.mode.close_mode == CloseMode::Unshare,
            clear_handlers: self.mode.signal_reset.by_clone,
            cgroup,
        };
        let argument = (&raw const *self).cast_mut().cast();
        // SAFETY: `enter` is made for this, and `self` is borrowed until the child no longer uses it.
        let cloned = unsafe { clone::clone(options, stack, enter, argument, self.slot) };
        let cloned =
            cloned.map_err(|error| (Stage::Clone, error.raw_os_error().unwrap_or(libc::EIO)))?;
        match self.failure() {
            None => Ok(cloned),
            Some(failure) => {
                // The child has exited already. Reap it, so that its tree is empty.
                exit::wait_pidfd(&cloned.pidfd, WaitIdOptions::empty());
                Err(failure)
            }
        }
    }

    /// The step that failed and its `errno`. Valid once the child has exited or called `execve`.
    fn failure(&self) -> Option<(Stage, i32)> {
        let stage = Stage::from_number(self.failure[0].load(Ordering::Acquire))?;
        Some((stage, self.failure[1].load(Ordering::Acquire)))
    }

    /// Executes the program, or returns the failure.
    fn run(&self) -> Result<Infallible, (Stage, i32)> {
        if !self.slot.set_running() {
            return Err((Stage::Group, libc::ECANCELED));
        }
        self.unshare_files()?;
        if let Some(score) = self.missing_oom_score() {
            let is_set = write_oom_score::write_own(score);
            self.has_oom_score.store(is_set, Ordering::Release);
        }
        set_signals(self.mode.signal_reset.signals, libc::SIG_DFL);
        if self.program.ignore_signals {
            // With SIGCHLD ignored, the program could not wait for its children.
            set_signals(!(1 << (libc::SIGCHLD - 1)), libc::SIG_IGN);
        }
        let result = match self.program.session_mode {
            // SAFETY: no pointers.
            SessionMode::Group => unsafe { libc::syscall(libc::SYS_setpgid, 0, 0) },
            // SAFETY: no pointers.
            _ => unsafe { libc::syscall(libc::SYS_setsid) },
        };
        check(Stage::Group, result)?;
        let terminal = match self.program.session_mode {
            SessionMode::Group | SessionMode::Session => None,
            SessionMode::Terminal => self.fds.first(),
            SessionMode::PassedTerminal => self.fds.last(),
        };
        if let Some(terminal) = terminal {
            // SAFETY: no pointers; zero context not to steal the terminal from another session.
            let result = unsafe { libc::ioctl(*terminal, libc::TIOCSCTTY, 0) };
            check(Stage::Terminal, result.into())?;
        }
        for (target, source) in (0_i32..).zip(&self.fds) {
            // SAFETY: no pointers. The source is above the target, so they differ, and the target loses
            // close-on-exec.
            let result = unsafe { libc::syscall(libc::SYS_dup3, *source, target, 0) };
            check(Stage::Descriptors, result)?;
        }
        self.close_others();
        for (resource, limit) in self.limits.iter().flatten() {
            let limit: *const libc::rlimit64 = limit;
            let none = std::ptr::null_mut::<libc::rlimit64>();
            // SAFETY: the limit is valid; the old one is not returned.
            let result = unsafe { libc::syscall(libc::SYS_prlimit64, 0, *resource, limit, none) };
            check(Stage::Limits, result)?;
        }
        if !self.cwd.is_null() {
            self.slot.enter(Stage::Directory);
            // SAFETY: a terminated string prepared before the clone.
            let result = unsafe { libc::syscall(libc::SYS_chdir, self.cwd) };
            check(Stage::Directory, result)?;
        }
        mask::unblock_all();
        self.slot.enter(Stage::Execute);
        Err((Stage::Execute, self.execute()))
    }

    /// Tries the candidates as `execvp` does, and returns the most relevant `errno`.
    fn execute(&self) -> i32 {
        let mut denied = false;
        let mut last = libc::ENOENT;
        for candidate in &self.candidates {
            if candidate.is_null() {
                break;
            }
            let (argv, env) = (self.argv.as_ptr(), self.env.as_ptr());
            // SAFETY: terminated strings and null-terminated arrays, prepared before the clone.
            unsafe { libc::syscall(libc::SYS_execve, *candidate, argv, env) };
            last = errno();
            match last {
                libc::EACCES => denied = true,
                // Not in this directory, or the directory is inaccessible.
                libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT => {}
                _ => return last,
            }
        }
        if denied { libc::EACCES } else { last }
    }

    /// Unshares the descriptor table. No descriptor may be opened or closed before this.
    fn unshare_files(&self) -> Result<(), (Stage, i32)> {
        if self.mode.close_mode == CloseMode::Unshare {
            let highest = self.fds.iter().max().copied().unwrap_or_default();
            let above = highest.cast_unsigned().wrapping_add(1);
            check(Stage::Descriptors, unshare_from(above))?;
        }
        Ok(())
    }

    fn close_others(&self) {
        let first = self.fds.len() as c_int;
        match self.mode.close_mode {
            CloseMode::Unshare | CloseMode::Range => {
                // SAFETY: no pointers. The table is the child's own by now, and it uses only the
                // descriptors below from here on.
                unsafe { libc::syscall(libc::SYS_close_range, first, c_uint::MAX, 0) };
            }
            CloseMode::Each => {
                let mut fd = first;
                while fd <= self.highest {
                    // SAFETY: as above.
                    unsafe { libc::syscall(libc::SYS_close, fd) };
                    fd += 1;
                }
            }
        }
    }
}

extern "C" fn enter(setup: *mut c_void) -> c_int {
    // SAFETY: it is the pointer from `ChildSetup::start`, and the thread that owns it is suspended
    // until this process calls `execve` or exits.
    let setup = unsafe { &*setup.cast::<ChildSetup<'_>>() };
    let Err((stage, errno)) = setup.run();
    setup.failure[1].store(errno, Ordering::Release);
    setup.failure[0].store(stage as i32, Ordering::Release);
    // SAFETY: exits without running any of the server's code.
    unsafe { libc::_exit(127) }
}

/// The test that a probe child runs. It exits with zero on success.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum CloneProbe {
    /// Nothing: the clone itself is the test.
    Exit,
    /// Unsharing the descriptor table.
    Unshare,
}

impl CloneProbe {
    pub(super) fn entry(self) -> Entry {
        match self {
            CloneProbe::Exit => exit,
            CloneProbe::Unshare => try_unshare,
        }
    }
}

extern "C" fn exit(_: *mut c_void) -> c_int {
    // SAFETY: exits without running any of the server's code.
    unsafe { libc::_exit(0) }
}

extern "C" fn try_unshare(_: *mut c_void) -> c_int {
    // No descriptor has this number, so nothing is closed if the table is still shared.
    let status = c_int::from(unshare_from(c_uint::MAX) != 0);
    // SAFETY: exits without running any of the server's code.
    unsafe { libc::_exit(status) }
}

/// Unshares the descriptor table, keeping the descriptors below `first`.
fn unshare_from(first: c_uint) -> c_long {
    let flags = libc::CLOSE_RANGE_UNSHARE;
    // SAFETY: no pointers; it closes descriptors in a copy of the table only.
    unsafe { libc::syscall(libc::SYS_close_range, first, c_uint::MAX, flags) }
}

/// Sets the disposition of a set of signals, see [`SignalReset::signals`].
fn set_signals(signals: u64, disposition: libc::sighandler_t) {
    // The kernel's `struct sigaction`: the handler comes first; no flags, no mask.
    let mut action = [0_u64; 8];
    action[0] = disposition as u64;
    let none = std::ptr::null_mut::<c_void>();
    let mut left = signals;
    while left != 0 {
        let signal = left.trailing_zeros() + 1;
        left &= left - 1;
        // SAFETY: the struct is longer than any the kernel reads; the old one is not returned.
        // Fails for SIGKILL and SIGSTOP, which always have their default.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                action.as_ptr(),
                none,
                8_usize,
            )
        };
    }
}

fn check(stage: Stage, result: c_long) -> Step {
    if result == -1 {
        Err((stage, errno()))
    } else {
        Ok(result)
    }
}

fn errno() -> i32 {
    // SAFETY: no preconditions. It belongs to the spawner thread, which is suspended.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: valid for reads in this thread.
    unsafe { *errno }
}

/// The highest open descriptor. Another thread may open a higher one in the meantime, but all that
/// this program opens are close-on-exec; closing them explicitly is only a second safeguard.
fn highest_descriptor() -> RawFd {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names
        .filter_map(|name| name.parse().ok())
        .max()
        .unwrap_or(1024)
}
