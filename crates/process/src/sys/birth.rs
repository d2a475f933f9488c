//! What a child does between the clone and its program.
//!
//! It shares the server's memory and the spawner thread's TLS meanwhile: system calls only, nothing
//! allocated, nothing locked, no panic. Everything it needs was laid out before.
#![expect(
    unsafe_code,
    reason = "system calls on raw pointers, in a cloned process"
)]

use std::convert::Infallible;
use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::marker::PhantomData;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, Ordering};

use super::clone::Entry;
use super::dispositions::Dispositions;
use crate::strings::Strings;

/// Everything one child needs, and where it leaves word when it fails.
pub(crate) struct Birth<'a> {
    descriptors: [RawFd; 3],
    /// What becomes 3 and so on. All of them are above what they become, so no target is a source that
    /// is still needed.
    passed: Vec<RawFd>,
    /// Whether it ignores what it can.
    is_deaf: bool,
    standing: Standing,
    limit: Option<libc::rlimit64>,
    /// Null to stay where we are.
    cwd: *const c_char,
    candidates: Vec<*const c_char>,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    closing: Closing,
    dispositions: Dispositions,
    /// Written by the child, read by the thread that cloned it: a [`Stage`], then an `errno`.
    failure: [AtomicI32; 2],
    /// The pointers point into strings that outlive this.
    strings: PhantomData<&'a Strings>,
}

/// How a child gets rid of the descriptors that aren't for it. Everything of ours is close-on-exec
/// anyway; what the server itself inherited may not be.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// It shares our table, and takes a copy of the part it needs.
    Unshare,
    /// It has a copy of the whole table, and closes it from 3 on.
    Range,
    /// The same on kernels that can't close a range, up to the highest there is.
    Each { highest: RawFd },
}

/// What a child leads.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A group of its own.
    Group,
    /// A session without a terminal.
    Session,
    /// A session with the first descriptor as its controlling terminal.
    Terminal,
    /// A session with the last one as that.
    TerminalBehind,
}

/// The strings of one program.
pub(crate) struct Program<'a> {
    pub(crate) candidates: &'a Strings,
    pub(crate) argv: &'a Strings,
    pub(crate) env: &'a Strings,
    /// None to stay where we are.
    pub(crate) cwd: &'a Strings,
}

/// Where a child gave up.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Group = 1,
    Terminal,
    Descriptors,
    Limits,
    Directory,
    Execute,
}

impl Stage {
    /// None for zero, which says that all went well.
    pub(crate) fn from_number(number: i32) -> Option<Self> {
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

impl<'a> Birth<'a> {
    pub(crate) fn new(
        program: &Program<'a>,
        (descriptors, passed): ([RawFd; 3], Vec<RawFd>),
        (standing, is_deaf): (Standing, bool),
        open_files: Option<(u64, u64)>,
        closing: Closing,
        dispositions: Dispositions,
    ) -> Self {
        Self {
            descriptors,
            passed,
            is_deaf,
            standing,
            limit: open_files.map(|(soft, hard)| libc::rlimit64 {
                rlim_cur: soft,
                rlim_max: hard,
            }),
            cwd: program.cwd.pointers()[0],
            candidates: program.candidates.pointers(),
            argv: program.argv.pointers(),
            env: program.env.pointers(),
            closing,
            dispositions,
            failure: [AtomicI32::new(0), AtomicI32::new(0)],
            strings: PhantomData,
        }
    }

    /// What to clone with: sound to run as the other process as long as `self` stays where it is.
    pub(crate) fn entry(&self) -> (Entry, *mut c_void) {
        (enter, (&raw const *self).cast_mut().cast())
    }

    /// Where the child gave up and why, once it has exited or executed its program.
    pub(crate) fn failure(&self) -> Option<(Stage, i32)> {
        let stage = Stage::from_number(self.failure[0].load(Ordering::Acquire))?;
        Some((stage, self.failure[1].load(Ordering::Acquire)))
    }

    /// Becomes the program, or says why not.
    fn run(&self) -> Result<Infallible, (Stage, i32)> {
        self.unshare_files()?;
        set_signals(self.dispositions.put_back, libc::SIG_DFL);
        if self.is_deaf {
            // Who ignores the signal of its children never learns how they ended.
            set_signals(!(1 << (libc::SIGCHLD - 1)), libc::SIG_IGN);
        }
        let led = match self.standing {
            // SAFETY: no pointers.
            Standing::Group => unsafe { libc::syscall(libc::SYS_setpgid, 0, 0) },
            // SAFETY: no pointers.
            _ => unsafe { libc::syscall(libc::SYS_setsid) },
        };
        check(Stage::Group, led)?;
        let terminal = match self.standing {
            Standing::Group | Standing::Session => None,
            Standing::Terminal => self.descriptors.first(),
            Standing::TerminalBehind => self.passed.last(),
        };
        if let Some(terminal) = terminal {
            // SAFETY: no pointers; zero means not to steal the terminal from another session.
            let taken = unsafe { libc::ioctl(*terminal, libc::TIOCSCTTY, 0) };
            check(Stage::Terminal, taken.into())?;
        }
        for (target, source) in self.descriptors.into_iter().enumerate() {
            // SAFETY: no pointers. The source is never 0, 1 or 2, so it differs from the target,
            // which therefore loses close-on-exec.
            let result = unsafe { libc::syscall(libc::SYS_dup3, source, target as c_int, 0) };
            check(Stage::Descriptors, result)?;
        }
        for (target, source) in (3_i32..).zip(&self.passed) {
            // SAFETY: as above; where they come from the streams are of no more use.
            let result = unsafe { libc::syscall(libc::SYS_dup3, *source, target, 0) };
            check(Stage::Descriptors, result)?;
        }
        self.close_others();
        if let Some(limit) = &self.limit {
            let limit: *const libc::rlimit64 = limit;
            let none = std::ptr::null_mut::<libc::rlimit64>();
            // SAFETY: the limit is valid; the old one isn't asked for.
            let result =
                unsafe { libc::syscall(libc::SYS_prlimit64, 0, libc::RLIMIT_NOFILE, limit, none) };
            check(Stage::Limits, result)?;
        }
        if !self.cwd.is_null() {
            // SAFETY: a terminated string laid out before the clone.
            let entered = unsafe { libc::syscall(libc::SYS_chdir, self.cwd) };
            check(Stage::Directory, entered)?;
        }
        unblock_signals();
        Err((Stage::Execute, self.execute()))
    }

    /// Tries the candidates as `execvp` does, and returns the error that says most.
    fn execute(&self) -> i32 {
        let mut denied = false;
        let mut last = libc::ENOENT;
        for candidate in &self.candidates {
            if candidate.is_null() {
                break;
            }
            let (argv, env) = (self.argv.as_ptr(), self.env.as_ptr());
            // SAFETY: terminated strings and null-terminated arrays, laid out before the clone.
            unsafe { libc::syscall(libc::SYS_execve, *candidate, argv, env) };
            last = errno();
            match last {
                libc::EACCES => denied = true,
                // Not here, or nowhere one could look.
                libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT => {}
                _ => return last,
            }
        }
        if denied { libc::EACCES } else { last }
    }

    /// Until here nothing may be opened or closed where the table of descriptors is shared.
    fn unshare_files(&self) -> Result<(), (Stage, i32)> {
        if self.closing == Closing::Unshare {
            let all = self.descriptors.iter().chain(&self.passed);
            let highest = all.max().copied().unwrap_or_default();
            let above = highest.cast_unsigned().wrapping_add(1);
            check(Stage::Descriptors, unshare_from(above))?;
        }
        Ok(())
    }

    fn close_others(&self) {
        // There are a handful of them.
        let first = 3 + self.passed.len() as c_int;
        match self.closing {
            Closing::Unshare | Closing::Range => {
                // SAFETY: no pointers, and from here on the child uses those below only. The
                // table is the child's own by now.
                unsafe { libc::syscall(libc::SYS_close_range, first, c_uint::MAX, 0) };
            }
            Closing::Each { highest } => {
                let mut fd = first;
                while fd <= highest {
                    // SAFETY: as above.
                    unsafe { libc::syscall(libc::SYS_close, fd) };
                    fd += 1;
                }
            }
        }
    }
}

extern "C" fn enter(birth: *mut c_void) -> c_int {
    // SAFETY: it is the pointer from `Birth::entry`, and the thread that keeps it alive stands
    // still until this process executes or exits.
    let birth = unsafe { &*birth.cast::<Birth<'_>>() };
    let Err((stage, errno)) = birth.run();
    birth.failure[1].store(errno, Ordering::Release);
    birth.failure[0].store(stage as i32, Ordering::Release);
    // SAFETY: leaves without running anything of the server's.
    unsafe { libc::_exit(127) }
}

/// What a child can try out before it exits with zero or one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trial {
    /// Nothing: that it lives is enough.
    Live,
    /// Parting with our table of descriptors.
    Unshare,
}

impl Trial {
    pub(super) fn entry(self) -> Entry {
        match self {
            Trial::Live => live,
            Trial::Unshare => try_unshare,
        }
    }
}

extern "C" fn live(_: *mut c_void) -> c_int {
    // SAFETY: leaves without running anything of the server's.
    unsafe { libc::_exit(0) }
}

extern "C" fn try_unshare(_: *mut c_void) -> c_int {
    // There can be no such descriptor, so nothing is lost if the table is still shared.
    let status = c_int::from(unshare_from(c_uint::MAX) != 0);
    // SAFETY: leaves without running anything of the server's.
    unsafe { libc::_exit(status) }
}

/// Parts with a shared table of descriptors, keeping those below `first`.
fn unshare_from(first: c_uint) -> c_long {
    let flags = libc::CLOSE_RANGE_UNSHARE;
    // SAFETY: no pointers; it closes in a copy of the table, and nothing in ours.
    unsafe { libc::syscall(libc::SYS_close_range, first, c_uint::MAX, flags) }
}

/// Puts signals back to their defaults, see [`Dispositions`], or has them ignored.
fn set_signals(which: u64, disposition: libc::sighandler_t) {
    // A `struct sigaction` of the kernel: what becomes of it comes first; no flags, no mask.
    let mut action = [0_u64; 8];
    action[0] = disposition as u64;
    let none = std::ptr::null_mut::<c_void>();
    let mut left = which;
    while left != 0 {
        let signal = left.trailing_zeros() + 1;
        left &= left - 1;
        // SAFETY: the struct is longer than any the kernel reads; the old one isn't asked for.
        // Refused for SIGKILL and SIGSTOP, which are as they should be.
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

fn unblock_signals() {
    let mask = 0_u64;
    let none = std::ptr::null_mut::<u64>();
    let how = libc::SIG_SETMASK;
    // SAFETY: the mask is as long as said; the old one isn't asked for. Can't fail.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            how,
            &raw const mask,
            none,
            8_usize,
        )
    };
}

fn check(stage: Stage, result: c_long) -> Step {
    if result == -1 {
        Err((stage, errno()))
    } else {
        Ok(result)
    }
}

fn errno() -> i32 {
    // SAFETY: no preconditions. It is the spawner thread's, which stands still.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: valid for reads in the thread that asked.
    unsafe { *place }
}

/// Whether this kernel, and whatever filters our calls, closes a range of descriptors.
pub(crate) fn has_close_range() -> bool {
    // SAFETY: no pointers; there can be no such descriptor.
    unsafe { libc::syscall(libc::SYS_close_range, c_uint::MAX, c_uint::MAX, 0) == 0 }
}
