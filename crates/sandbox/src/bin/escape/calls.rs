//! System calls that lead around everything else.
#![expect(unsafe_code, reason = "nobody wraps these calls, with reason")]

use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr;

use rustix::process::Pid;

fn check(result: libc::c_long) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Only whether it could be.
pub(crate) fn signal(pid: &str) -> io::Result<()> {
    let pid = pid.parse().ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("no number"))?;
    Ok(rustix::process::test_kill_process(pid)?)
}

pub(crate) fn trace() -> io::Result<()> {
    let request = libc::PTRACE_TRACEME;
    // SAFETY: with this request nothing is pointed to.
    check(unsafe { libc::syscall(libc::SYS_ptrace, request, 0, 0, 0) })
}

/// Its own, which nobody would mind; another's would take the same call.
pub(crate) fn memory() -> io::Result<()> {
    let (from, mut to) = ([7_u8; 4], [0_u8; 4]);
    let remote = libc::iovec {
        iov_base: from.as_ptr().cast_mut().cast(),
        iov_len: from.len(),
    };
    let local = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: to.len(),
    };
    let own = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: both are as long as they say.
    let read = unsafe { libc::process_vm_readv(own, &raw const local, 1, &raw const remote, 1, 0) };
    check(if read < 0 { -1 } else { 0 })
}

pub(crate) fn ring() -> io::Result<()> {
    let mut parameters = [0_u8; 120];
    let result =
        // SAFETY: the parameters are as long as the kernel's own.
        unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    check(result)
}

/// The keyring of the session, which is made if there is none.
pub(crate) fn keys() -> io::Result<()> {
    let (get_keyring_id, session) = (0, -3);
    // SAFETY: no pointers.
    check(unsafe { libc::syscall(libc::SYS_keyctl, get_keyring_id, session, 1) })
}

pub(crate) fn user_namespace() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::syscall(libc::SYS_unshare, libc::CLONE_NEWUSER) })
}

/// By the call whose flags can't be seen from outside.
pub(crate) fn clone_namespace() -> io::Result<()> {
    let mut arguments = [0_u64; 8];
    arguments[0] = libc::CLONE_NEWUSER as u64;
    arguments[4] = libc::SIGCHLD as u64;
    let size = size_of_val(&arguments);
    // SAFETY: a child of its own memory, which leaves at once; the arguments are as long as said.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, arguments.as_ptr(), size) };
    if pid == 0 {
        // SAFETY: leaves without running anything else.
        unsafe { libc::_exit(0) };
    }
    check(pid)
}

pub(crate) fn mount(path: &str) -> io::Result<()> {
    let path = CString::new(path)?;
    let kind = c"tmpfs";
    // SAFETY: terminated strings, and no data.
    let mounted =
        unsafe { libc::mount(kind.as_ptr(), path.as_ptr(), kind.as_ptr(), 0, ptr::null()) };
    if mounted == 0 {
        // SAFETY: a terminated string.
        unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
    }
    check(mounted.into())
}

/// A piece of the tree by the youngest of the calls that take one. Without anything that it is to
/// change it only opens it, which everybody may.
pub(crate) fn tree() -> io::Result<()> {
    let (open_tree_attr, nothing, size): (_, *const u64, _) = (467, ptr::null(), 0_usize);
    let root = c"/".as_ptr();
    // SAFETY: a terminated string, and nothing to change.
    let opened = unsafe {
        libc::syscall(
            open_tree_attr,
            libc::AT_FDCWD,
            root,
            libc::O_CLOEXEC,
            nothing,
            size,
        )
    };
    check(opened)
}

/// Which quotas a file system has, by a descriptor. That there are none is an answer, too.
pub(crate) fn quota() -> io::Result<()> {
    let root = std::fs::File::open("/")?;
    // Of users, how they are written.
    let question = 0x80_0004_u32 << 8;
    let mut format = 0_u32;
    // SAFETY: the answer is one number.
    let asked = unsafe {
        libc::syscall(
            libc::SYS_quotactl_fd,
            root.as_raw_fd(),
            question,
            0,
            &raw mut format,
        )
    };
    match check(asked) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        asked => asked,
    }
}

/// A file by the number it has in its file system.
pub(crate) fn by_handle(path: &str) -> io::Result<()> {
    let path = CString::new(path)?;
    let root = c"/";
    // A length of 120, a kind, and the room for it.
    let mut handle = [0_u32; 32];
    handle[0] = 120;
    let mut mount = 0;
    // SAFETY: the room is as long as it says.
    let named = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            handle.as_mut_ptr(),
            &raw mut mount,
            0,
        )
    };
    check(named)?;
    // SAFETY: a terminated string.
    let place = unsafe { libc::open(root.as_ptr(), libc::O_RDONLY) };
    // SAFETY: the handle is what the kernel has written.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_open_by_handle_at,
            place,
            handle.as_mut_ptr(),
            libc::O_RDONLY,
        )
    };
    check(opened)
}

/// A segment that somebody has made on the host.
pub(crate) fn shared_memory(key: &str) -> io::Result<()> {
    let key = key.parse().map_err(io::Error::other)?;
    // SAFETY: no pointers.
    check(unsafe { libc::shmget(key, 0, 0) }.into())
}

/// Asks for our number as a program of 32 bits would.
#[cfg(target_arch = "x86_64")]
pub(crate) fn foreign() -> io::Result<()> {
    let number: i64;
    // SAFETY: asks for a number and changes nothing but what is named here.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("rax") 20_i64 => number,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    match i32::try_from(number) {
        Ok(number) if number > 0 => Ok(()),
        Ok(errno) => Err(io::Error::from_raw_os_error(-errno)),
        Err(_) => Err(io::Error::other("no number")),
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn foreign() -> io::Result<()> {
    Err(io::Error::other("there is no other architecture here"))
}
