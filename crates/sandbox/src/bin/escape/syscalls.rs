//! System calls that bypass namespaces.
#![expect(unsafe_code, reason = "these calls have no safe wrapper")]

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

/// Sends signal 0.
pub(crate) fn signal(pid: &str) -> io::Result<()> {
    let pid = pid.parse().ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("not a number"))?;
    Ok(rustix::process::test_kill_process(pid)?)
}

pub(crate) fn trace() -> io::Result<()> {
    let request = libc::PTRACE_TRACEME;
    // SAFETY: this request uses no pointers.
    check(unsafe { libc::syscall(libc::SYS_ptrace, request, 0, 0, 0) })
}

/// Reads memory of this process with the call for other processes.
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
    // SAFETY: both buffers have the given lengths.
    let read = unsafe { libc::process_vm_readv(own, &raw const local, 1, &raw const remote, 1, 0) };
    check(if read < 0 { -1 } else { 0 })
}

pub(crate) fn ring() -> io::Result<()> {
    let mut parameters = [0_u8; 120];
    let result =
        // SAFETY: the buffer has the size of `struct io_uring_params`.
        unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    check(result)
}

/// Gets or creates the session keyring.
pub(crate) fn keys() -> io::Result<()> {
    let (get_keyring_id, session) = (0, -3);
    // SAFETY: no pointers.
    check(unsafe { libc::syscall(libc::SYS_keyctl, get_keyring_id, session, 1) })
}

pub(crate) fn user_namespace() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::syscall(libc::SYS_unshare, libc::CLONE_NEWUSER) })
}

/// Creates a user namespace with `clone3`, whose flags a filter can't inspect.
pub(crate) fn clone_namespace() -> io::Result<()> {
    let mut arguments = [0_u64; 8];
    arguments[0] = libc::CLONE_NEWUSER as u64;
    arguments[4] = libc::SIGCHLD as u64;
    let size = size_of_val(&arguments);
    // SAFETY: the child has its own memory and exits at once; the arguments have the given size.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, arguments.as_ptr(), size) };
    if pid == 0 {
        // SAFETY: exits without running anything else.
        unsafe { libc::_exit(0) };
    }
    check(pid)
}

pub(crate) fn mount(path: &str) -> io::Result<()> {
    let path = CString::new(path)?;
    let tmpfs = c"tmpfs";
    // SAFETY: NUL-terminated strings, and no data.
    let mounted = unsafe {
        libc::mount(
            tmpfs.as_ptr(),
            path.as_ptr(),
            tmpfs.as_ptr(),
            0,
            ptr::null(),
        )
    };
    if mounted == 0 {
        // SAFETY: a NUL-terminated string.
        unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
    }
    check(mounted.into())
}

/// Opens a mount with `open_tree_attr`, the newest of these calls. Without attributes it needs no
/// capability.
pub(crate) fn tree() -> io::Result<()> {
    let (open_tree_attr, no_attributes, size): (_, *const u64, _) = (467, ptr::null(), 0_usize);
    let root = c"/".as_ptr();
    // SAFETY: a NUL-terminated string, and no attributes.
    let opened = unsafe {
        libc::syscall(
            open_tree_attr,
            libc::AT_FDCWD,
            root,
            libc::O_CLOEXEC,
            no_attributes,
            size,
        )
    };
    check(opened)
}

/// Queries the quota format of a file system. ESRCH, for a file system without quotas, counts as success.
pub(crate) fn quota() -> io::Result<()> {
    let root = std::fs::File::open("/")?;
    // Q_GETFMT for user quotas.
    let command = 0x80_0004_u32 << 8;
    let mut format = 0_u32;
    // SAFETY: the kernel writes one number.
    let result = unsafe {
        libc::syscall(
            libc::SYS_quotactl_fd,
            root.as_raw_fd(),
            command,
            0,
            &raw mut format,
        )
    };
    match check(result) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        result => result,
    }
}

/// Opens a file by its handle.
pub(crate) fn by_handle(path: &str) -> io::Result<()> {
    let path = CString::new(path)?;
    let root = c"/";
    // `struct file_handle`: length, type, and 120 bytes.
    let mut handle = [0_u32; 32];
    handle[0] = 120;
    let mut mount = 0;
    // SAFETY: the buffer has the given length.
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
    // SAFETY: a NUL-terminated string.
    let mount_fd = unsafe { libc::open(root.as_ptr(), libc::O_RDONLY) };
    // SAFETY: the kernel has written the handle.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_open_by_handle_at,
            mount_fd,
            handle.as_mut_ptr(),
            libc::O_RDONLY,
        )
    };
    check(opened)
}

/// Looks up a shared memory segment of the host.
pub(crate) fn shared_memory(key: &str) -> io::Result<()> {
    let key = key.parse().map_err(io::Error::other)?;
    // SAFETY: no pointers.
    check(unsafe { libc::shmget(key, 0, 0) }.into())
}

/// Calls `getpid` through the 32-bit entry point.
#[cfg(target_arch = "x86_64")]
pub(crate) fn foreign() -> io::Result<()> {
    let number: i64;
    // SAFETY: returns a number and changes only the registers listed.
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
        Err(_) => Err(io::Error::other("not a number")),
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn foreign() -> io::Result<()> {
    Err(io::Error::other("no other architecture is supported"))
}
