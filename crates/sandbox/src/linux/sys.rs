//! System calls of the sandbox that neither `rustix` nor another dependency wraps.
//!
//! Landlock is called directly rather than through the `landlock` crate: the rights to handle depend on
//! the kernel's version, which the crate doesn't expose, and the helper reports plain errno values.
#![expect(unsafe_code, reason = "system calls on raw pointers")]

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use libc::sock_filter;
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;

/// Installs a seccomp filter for this process and everything it executes.
pub(super) fn set_filter(filter: &[sock_filter]) -> Result<(), Errno> {
    install_filter(filter, 0).map(drop)
}

/// Installs a filter like [`set_filter`]. Returns the listener for the system calls that it reports.
///
/// Once the listener has received a call, only a fatal signal interrupts it: the supervisor may
/// already have performed it. Kernels before 5.19 can't do that and fail with `EINVAL`.
pub(super) fn set_filter_with_listener(filter: &[sock_filter]) -> Result<OwnedFd, Errno> {
    let flags =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let number = install_filter(filter, flags)?;
    let number = c_int::try_from(number).map_err(|_| Errno::RANGE)?;
    // SAFETY: the kernel has just created this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn install_filter(filter: &[sock_filter], flags: c_ulong) -> Result<c_long, Errno> {
    let length = u16::try_from(filter.len()).map_err(|_| Errno::INVAL)?;
    let program = libc::sock_fprog {
        len: length,
        filter: filter.as_ptr().cast_mut(),
    };
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: `program` points to `len` instructions, which the kernel copies.
    check(unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) })
}

/// SIOCUNIXFILE, see unix(7). Missing in the `libc` crate.
const SIOCUNIXFILE: libc::Ioctl = 0x89e0;

/// SIOCGSKNS. Missing in the `libc` crate.
const SIOCGSKNS: libc::Ioctl = 0x894c;

/// Opens the file that a unix socket is bound to, with `O_PATH`. Fails with `ENOENT` if there is
/// none. Needs CAP_NET_ADMIN over the socket's network namespace.
pub(super) fn socket_file(socket: &OwnedFd) -> Result<OwnedFd, Errno> {
    open_by_ioctl(socket, SIOCUNIXFILE)
}

/// Opens the network namespace that a socket was created in. Needs CAP_NET_ADMIN over it.
pub(super) fn network_namespace(socket: &OwnedFd) -> Result<OwnedFd, Errno> {
    open_by_ioctl(socket, SIOCGSKNS)
}

fn open_by_ioctl(socket: &OwnedFd, request: libc::Ioctl) -> Result<OwnedFd, Errno> {
    // SAFETY: neither request takes an argument.
    let number = check(unsafe { libc::ioctl(socket.as_raw_fd(), request) }.into())?;
    let number = c_int::try_from(number).map_err(|_| Errno::RANGE)?;
    // SAFETY: the kernel has just created this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Connects a socket to an address in the kernel's encoding.
pub(super) fn connect(socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::INVAL)?;
    // SAFETY: the address can be read for its length.
    let result = unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) };
    check(result.into()).map(drop)
}

/// `struct mount_attr`, see mount_setattr(2).
#[repr(C)]
#[derive(Debug, Default)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Adds attributes to a mount, and with `recursive` to all mounts below it. Makes them private, so that
/// mount events don't propagate.
pub(super) fn set_mount_attributes(
    mount: impl AsFd,
    attributes: MountAttrFlags,
    recursive: bool,
) -> Result<(), Errno> {
    let attributes = MountAttr {
        attr_set: attributes.bits().into(),
        propagation: libc::MS_PRIVATE,
        ..MountAttr::default()
    };
    let recursive = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is NUL-terminated and `attributes` has the size that is passed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            &raw const attributes,
            size_of::<MountAttr>(),
        )
    };
    check(result).map(drop)
}

/// Moves this process to a new user namespace, which has no id mappings yet. Fails in a process with
/// more than one thread.
pub(super) fn unshare_user_namespace() -> Result<(), Errno> {
    // SAFETY: no pointers, and descriptors are not affected.
    let result = unsafe { libc::syscall(libc::SYS_unshare, libc::CLONE_NEWUSER) };
    check(result).map(drop)
}

/// Drops all capabilities from the bounding set, so that no program that is executed gets one.
pub(super) fn drop_bounding_set() -> Result<(), Errno> {
    for number in 0..64 {
        // SAFETY: no pointers.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number, 0, 0, 0) };
        match check(result.into()) {
            // The kernel supports no further capability.
            Err(Errno::INVAL) => break,
            dropped => dropped?,
        };
    }
    Ok(())
}

/// `struct landlock_ruleset_attr`, see landlock_create_ruleset(2).
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct RulesetAttributes {
    pub(super) handled_fs: u64,
    pub(super) handled_net: u64,
    pub(super) scoped: u64,
}

/// `struct landlock_path_beneath_attr`, see landlock_add_rule(2).
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

/// Returns the Landlock ABI version of this kernel.
///
/// # Errors
/// If the kernel has no Landlock, or it is disabled.
pub fn landlock_version() -> Result<u32, Errno> {
    let get_version = 1;
    // SAFETY: with this flag the kernel expects a null pointer and size 0.
    let version = unsafe { create_ruleset(ptr::null(), 0, get_version) }?;
    Ok(version.cast_unsigned())
}

/// Creates a Landlock ruleset. `size` is the size of the attributes that this kernel knows.
pub(super) fn landlock_create_ruleset(
    attributes: &RulesetAttributes,
    size: usize,
) -> Result<OwnedFd, Errno> {
    let size = size.min(size_of::<RulesetAttributes>());
    // SAFETY: `attributes` is valid for the size passed, which is at most its own.
    let number = unsafe { create_ruleset(attributes, size, 0) }?;
    // SAFETY: the kernel has just created this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// # Safety
/// `attributes` must be valid for reads of `size` bytes.
unsafe fn create_ruleset(
    attributes: *const RulesetAttributes,
    size: usize,
    flags: c_uint,
) -> Result<c_int, Errno> {
    let number = libc::SYS_landlock_create_ruleset;
    // SAFETY: the caller guarantees that the attributes can be read.
    let result = check(unsafe { libc::syscall(number, attributes, size, flags) })?;
    c_int::try_from(result).map_err(|_| Errno::RANGE)
}

/// Adds a rule that allows these rights at and below `parent`.
pub(super) fn landlock_allow(
    ruleset: &OwnedFd,
    parent: impl AsFd,
    allowed: u64,
) -> Result<(), Errno> {
    let rule = PathBeneath {
        allowed,
        parent: parent.as_fd().as_raw_fd(),
    };
    let path_beneath: c_int = 1;
    // SAFETY: `rule` is a valid rule of this type, and both descriptors are open.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            path_beneath,
            &raw const rule,
            0,
        )
    };
    check(result).map(drop)
}

/// Restricts this process to a ruleset.
pub(super) fn landlock_restrict_self(ruleset: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: no pointers.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) };
    check(result).map(drop)
}

/// Resets every signal to its default action. The wrapper around the helper ignores them all, and
/// ignored signals stay ignored across `execve`.
pub(super) fn reset_signal_handlers() {
    // `struct sigaction` of the kernel, all zeroes: SIG_DFL, no flags, no mask. libc's function would
    // refuse the two signals that it uses itself.
    let action = [0_u64; 8];
    let none = ptr::null_mut::<u64>();
    for signal in 1..=64 {
        let action = action.as_ptr();
        // SAFETY: `action` is longer than the struct the kernel reads, and the old action isn't
        // requested. Fails harmlessly for SIGKILL and SIGSTOP.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, action, none, 8_usize) };
    }
}

/// Marks all descriptors from 3 on as close-on-exec.
pub(super) fn close_inherited_on_exec() -> Result<(), Errno> {
    let flags = libc::CLOSE_RANGE_CLOEXEC;
    // SAFETY: no pointers, and no descriptor is closed now.
    check(unsafe { libc::syscall(libc::SYS_close_range, 3, c_uint::MAX, flags) }).map(drop)
}

/// Unblocks all signals.
pub(super) fn unblock_signals() {
    // SAFETY: all zeroes are an empty signal set.
    let none = unsafe { MaybeUninit::<libc::sigset_t>::zeroed().assume_init() };
    // SAFETY: the set is valid, and the old one isn't requested.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut()) };
}

/// Duplicates a descriptor to `number`, without close-on-exec. A descriptor that was open there is
/// closed.
///
/// # Safety
/// Nothing in this process may rely on what was open at `number`.
pub(super) unsafe fn duplicate_to(descriptor: c_int, number: c_int) -> Result<(), Errno> {
    // SAFETY: no pointers, and the caller gives up what was open at `number`.
    check(unsafe { libc::dup2(descriptor, number) }.into()).map(drop)
}

/// Replaces this process by a program. Returns only on failure.
pub(super) fn execute(program: &CStr, argv: &[&CStr], env: &[&CStr]) -> io::Error {
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: NUL-terminated strings and null-terminated arrays that outlive the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

fn pointers(strings: &[&CStr]) -> Vec<*const c_char> {
    let pointers = strings.iter().map(|string| string.as_ptr());
    pointers.chain([ptr::null()]).collect()
}

fn check(result: c_long) -> Result<c_long, Errno> {
    match result {
        -1 => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
        result => Ok(result),
    }
}
