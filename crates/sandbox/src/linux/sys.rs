//! The system calls of the stages that nobody else wraps.
#![expect(unsafe_code, reason = "system calls on raw pointers")]

use std::ffi::{CStr, c_char, c_int, c_long, c_uint};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use libc::sock_filter;
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;

/// Takes a filter of system calls on; there is no way back.
pub(super) fn set_filter(filter: &[sock_filter]) -> io::Result<()> {
    let length = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog {
        len: length,
        filter: filter.as_ptr().cast_mut(),
    };
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the program points to as many instructions as it says, and the kernel copies them.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program) };
    check(result).map(drop)
}

/// What becomes of mounts, as the kernel wants it.
#[repr(C)]
#[derive(Debug, Default)]
struct MountAttributes {
    set: u64,
    cleared: u64,
    propagation: u64,
    namespace: u64,
}

/// Gives a mount these attributes, in addition to those that it has, and if need be all below it. What
/// happens to it from then on happens here alone.
pub(super) fn set_mount(
    mount: impl AsFd,
    set: MountAttrFlags,
    all_below: bool,
) -> Result<(), Errno> {
    let attributes = MountAttributes {
        set: set.bits().into(),
        propagation: libc::MS_PRIVATE,
        ..MountAttributes::default()
    };
    let below = match all_below {
        true => libc::AT_RECURSIVE,
        false => 0,
    };
    // SAFETY: a terminated string, and attributes of the size that is said.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | below,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    check(result).map(drop).map_err(|error| errno(&error))
}

/// Leaves for a namespace of users where we are nobody yet. Nobody may have started a thread.
pub(super) fn leave_for_new_users() -> Result<(), Errno> {
    // SAFETY: no pointers, and no descriptors are shared or parted with.
    let result = unsafe { libc::syscall(libc::SYS_unshare, libc::CLONE_NEWUSER) };
    check(result).map(drop).map_err(|error| errno(&error))
}

/// Makes sure that no program that is executed gets a capability.
pub(super) fn forgo_capabilities() -> Result<(), Errno> {
    for number in 0..64 {
        // SAFETY: no pointers.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number, 0, 0, 0) };
        match check(result.into()).map_err(|error| errno(&error)) {
            // The last one that this kernel knows was before.
            Err(Errno::INVAL) => break,
            dropped => dropped?,
        };
    }
    Ok(())
}

/// What a ruleset of Landlock handles, as the kernel wants it.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct RulesetAttributes {
    pub(super) handled_fs: u64,
    pub(super) handled_net: u64,
    pub(super) scoped: u64,
}

/// A rule of Landlock's about one path.
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

/// Which version of Landlock this kernel has; an error where it has none.
///
/// # Errors
/// When the kernel has none, or it is switched off.
pub fn landlock_version() -> io::Result<u32> {
    let none = ptr::null::<RulesetAttributes>();
    let version: c_uint = 1;
    // SAFETY: with this flag there is nothing to point to.
    let result =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, version) };
    Ok(u32::try_from(check(result)?).unwrap_or_default())
}

pub(super) fn landlock_ruleset(attributes: &RulesetAttributes, size: usize) -> io::Result<OwnedFd> {
    let attributes: *const _ = attributes;
    // SAFETY: the attributes are valid for as many bytes as said, which are at most all of them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            attributes,
            size.min(size_of::<RulesetAttributes>()),
            0,
        )
    };
    let number = c_int::try_from(check(result)?).map_err(|_| io::ErrorKind::InvalidData)?;
    // SAFETY: the kernel has just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

pub(super) fn landlock_allow(ruleset: &OwnedFd, parent: impl AsFd, allowed: u64) -> io::Result<()> {
    let rule = PathBeneath {
        allowed,
        parent: parent.as_fd().as_raw_fd(),
    };
    let beneath: c_int = 1;
    // SAFETY: the rule is valid, and both descriptors are open.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            beneath,
            &raw const rule,
            0,
        )
    };
    check(result).map(drop)
}

pub(super) fn landlock_restrict(ruleset: &OwnedFd) -> io::Result<()> {
    // SAFETY: no pointers.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) };
    check(result).map(drop)
}

/// Puts every signal back to its default: whoever carries a stage ignores them all.
pub(super) fn heed_signals() {
    // The kernel's own struct, all zeroes: the default, no flags and no mask. libc would keep two
    // signals to itself, and those were ignored as well.
    let action = [0_u64; 8];
    let none = ptr::null_mut::<u64>();
    for signal in 1..=64 {
        let action = action.as_ptr();
        // SAFETY: the struct is longer than any the kernel reads; the old one isn't asked for.
        // Refused for those that can't be changed.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, action, none, 8_usize) };
    }
}

/// Everything behind the three streams is closed by the next program that is executed.
pub(super) fn close_others_on_exec() -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC;
    // SAFETY: no pointers, and nothing is closed now.
    check(unsafe { libc::syscall(libc::SYS_close_range, 3, c_uint::MAX, flags) }).map(drop)
}

/// Lets every signal through.
pub(super) fn unblock_signals() {
    // SAFETY: zeroes are an empty set.
    let none = unsafe { MaybeUninit::<libc::sigset_t>::zeroed().assume_init() };
    // SAFETY: the set is valid; the old one isn't asked for.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut()) };
}

/// Puts a descriptor at a number of our choice, open for whatever is executed next. Whatever was
/// there is closed.
pub(super) fn duplicate_to(descriptor: &OwnedFd, number: c_int) -> Result<(), Errno> {
    // SAFETY: no pointers. A stage knows what it has at its numbers.
    match unsafe { libc::dup2(descriptor.as_raw_fd(), number) } {
        -1 => Err(errno(&io::Error::last_os_error())),
        _ => Ok(()),
    }
}

/// A descriptor that was left open at this number for us to have.
pub(super) fn inherit(number: c_int) -> OwnedFd {
    // SAFETY: nobody else in a stage uses what is passed to it, and this is called once for each.
    // Where somebody has started it by hand and there is nothing, every use of it fails.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// A descriptor that the stage before has left open at this number.
pub(super) fn borrow(number: c_int) -> BorrowedFd<'static> {
    // SAFETY: nothing in a stage closes what it was left. Where somebody has started it by hand and
    // there is nothing, every use of it fails.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Becomes a program, or says why not.
pub(super) fn execute(program: &CStr, argv: &[&CStr], env: &[&CStr]) -> io::Error {
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: terminated strings and null-terminated arrays that outlive the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

fn pointers(strings: &[&CStr]) -> Vec<*const c_char> {
    let pointers = strings.iter().map(|string| string.as_ptr());
    pointers.chain([ptr::null()]).collect()
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn check(result: c_long) -> io::Result<c_long> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}
