//! Clones a process in the style of `vfork`, with a pidfd and directly into a cgroup.
#![expect(
    unsafe_code,
    reason = "clone3 returns twice and needs a shim in assembly"
)]

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::process::Pid;

use super::child_setup::CloneProbe;
use super::child_slot::ChildSlot;
use super::stack::ChildStack;

/// The function that runs in the child. It must not return.
pub(crate) type Entry = extern "C" fn(*mut c_void) -> c_int;

/// A process that has called `execve` or exited.
pub(crate) struct Cloned {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
}

/// `CLONE_INTO_CGROUP`, which does not fit into a `c_int`.
const INTO_CGROUP: u64 = 0x2_0000_0000;

/// `CLONE_CLEAR_SIGHAND`, which does not fit either.
const CLEAR_SIGHAND: u64 = 0x1_0000_0000;

/// The child shares this memory, the calling thread is suspended until it no longer does, and a pidfd
/// is returned.
const FLAGS: c_int = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD;

/// Whether `clone3` is available, in this kernel and under its seccomp filters. In old containers it
/// fails with ENOSYS or EPERM.
pub(crate) fn has_clone3() -> bool {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return false;
    }
    // SAFETY: a size of zero is rejected before anything is read.
    let result = unsafe { libc::syscall(libc::SYS_clone3, std::ptr::null::<c_void>(), 0_usize) };
    result == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}

/// Options of [`clone`].
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct CloneOptions<'a> {
    /// Use `clone` instead of `clone3`; it cannot place the child in a cgroup.
    pub(crate) legacy_clone: bool,
    /// The child shares the descriptor table and must unshare it before it changes a descriptor.
    pub(crate) share_files: bool,
    /// Reset signals with a handler in the child. Not supported by `clone`.
    pub(crate) clear_handlers: bool,
    /// The child's cgroup from its first instruction on; otherwise the caller's.
    pub(crate) cgroup: Option<BorrowedFd<'a>>,
}

/// Clones, and returns when the child has called `execve` or exited. Until then other threads find the
/// child in `slot`, which no other child may be using.
///
/// # Safety
/// `entry` with `argument` must be sound to run in a process that shares this memory while this thread
/// is suspended and all others continue: no allocation, no lock, no unwinding, no return.
pub(crate) unsafe fn clone(
    options: CloneOptions<'_>,
    stack: &mut ChildStack,
    entry: Entry,
    argument: *mut c_void,
    slot: &ChildSlot,
) -> io::Result<Cloned> {
    let pidfd: *mut c_int = slot.location();
    let files = if options.share_files {
        libc::CLONE_FILES
    } else {
        0
    };
    let pid = if options.legacy_clone {
        let flags = FLAGS | files | libc::SIGCHLD;
        // SAFETY: the stack is exclusively borrowed; the caller guarantees the entry; with
        // `CLONE_PIDFD` the only variadic argument read is the location of the pidfd.
        match unsafe { libc::clone(entry, stack.top(), flags, argument, pidfd) } {
            -1 => return Err(io::Error::last_os_error()),
            pid => pid,
        }
    } else {
        let flags = u64::from((FLAGS | files).cast_unsigned());
        let cleared = if options.clear_handlers {
            CLEAR_SIGHAND
        } else {
            0
        };
        let mut arguments = Arguments {
            flags: flags | cleared | options.cgroup.map_or(0, |_| INTO_CGROUP),
            pidfd: pidfd.expose_provenance() as u64,
            exit_signal: libc::SIGCHLD as u64,
            stack: stack.bottom().expose_provenance() as u64,
            stack_size: stack.size() as u64,
            cgroup: options.cgroup.map_or(0, |fd| fd.as_raw_fd() as u64),
            ..Arguments::default()
        };
        // SAFETY: the arguments are complete and outlive the call; the stack is exclusively
        // borrowed; the caller guarantees the entry.
        match unsafe { shim(&raw mut arguments, entry, argument) } {
            errno @ ..0 => return Err(io::Error::from_raw_os_error(-errno as i32)),
            pid => pid as i32,
        }
    };
    Ok(Cloned {
        pid: Pid::from_raw(pid).expect("the kernel returns the pid to the parent"),
        // SAFETY: the kernel has stored a new descriptor there.
        pidfd: unsafe { slot.take() },
    })
}

/// Clones a child that only runs a probe.
pub(crate) fn probe(
    options: CloneOptions<'_>,
    stack: &mut ChildStack,
    probe: CloneProbe,
) -> io::Result<Cloned> {
    // SAFETY: the probes are made for this and take no argument.
    unsafe {
        clone(
            options,
            stack,
            probe.entry(),
            std::ptr::null_mut(),
            &ChildSlot::new(),
        )
    }
}

/// The kernel's `struct clone_args`, up to the last field that is needed.
#[derive(Default)]
#[repr(C, align(8))]
struct Arguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// # Safety
/// As for [`clone`]; `arguments` must be valid and name a stack of their own.
#[cfg(target_arch = "x86_64")]
unsafe fn shim(arguments: *mut Arguments, entry: Entry, argument: *mut c_void) -> isize {
    let result: isize;
    // SAFETY: the parent leaves the block as after any system call: rax, rcx and r11 are declared,
    // and so is memory. The child is on a stack of its own, which the kernel has put into rsp and
    // which is aligned, and never leaves the block.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp", // Ends backtraces here.
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 as isize => result,
            in("rdi") arguments,
            in("rsi") size_of::<Arguments>(),
            in("r12") argument,
            in("r13") entry,
            out("rcx") _,
            out("r11") _,
        );
    }
    result
}

/// # Safety
/// As for [`clone`]; `arguments` must be valid and name a stack of their own.
#[cfg(target_arch = "aarch64")]
unsafe fn shim(arguments: *mut Arguments, entry: Entry, argument: *mut c_void) -> isize {
    let result: isize;
    // SAFETY: the parent leaves the block as after any system call: x0 is declared, and so is
    // memory. The child is on a stack of its own, which the kernel has put into sp and which is
    // aligned, and never leaves the block.
    unsafe {
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr", // Ends backtraces here.
            "mov x0, x20",
            "blr x21",
            "brk #1",
            "2:",
            inlateout("x0") arguments => result,
            in("x1") size_of::<Arguments>(),
            in("x8") libc::SYS_clone3,
            in("x20") argument,
            in("x21") entry,
        );
    }
    result
}

/// # Safety
/// None needed: it does nothing.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn shim(_: *mut Arguments, _: Entry, _: *mut c_void) -> isize {
    -(libc::ENOSYS as isize)
}
