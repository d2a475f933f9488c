//! System calls that bypass namespaces, create set-user-ID and set-group-ID files, or inject input.
#![expect(unsafe_code, reason = "these calls have no safe wrapper")]

use std::ffi::{CString, c_long};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;

pub(crate) fn attempt(arguments: &[&str]) -> io::Result<()> {
    let number = |text: &str| text.parse::<i64>().map_err(io::Error::other);
    // SAFETY: these calls take no pointers, or none with these arguments.
    let call_plain = |number, arguments: &[i64]| unsafe { call(number, arguments) };
    let result = match arguments {
        // Signal 0.
        ["signal", pid] => call_plain(libc::SYS_kill, &[number(pid)?, 0]),
        ["trace"] => call_plain(libc::SYS_ptrace, &[libc::PTRACE_TRACEME.into()]),
        ["memory"] => read_memory(),
        ["ring"] => {
            // Has the size of `struct io_uring_params`.
            let mut parameters = [0_u8; 120];
            let parameters = address(parameters.as_mut_ptr());
            // SAFETY: the buffer has the size that the call expects, and outlives it.
            unsafe { call(libc::SYS_io_uring_setup, &[1, parameters]) }
        }
        // Gets or creates the session keyring.
        ["keys"] => call_plain(libc::SYS_keyctl, &[0, -3, 1]),
        ["user-namespace"] => call_plain(libc::SYS_unshare, &[libc::CLONE_NEWUSER.into()]),
        ["clone-namespace"] => clone_namespace(),
        ["mount", path] => mount(path),
        // `open_tree_attr`, the newest of these calls. Without attributes it needs no capability.
        ["tree"] => {
            let root = address(c"/".as_ptr());
            let flags = libc::O_CLOEXEC.into();
            // SAFETY: the path is NUL-terminated and static.
            unsafe { call(467, &[libc::AT_FDCWD.into(), root, flags, 0, 0]) }
        }
        ["quota"] => query_quota(),
        ["by-handle", path] => open_by_handle(path),
        // Looks up a shared memory segment of the host.
        ["shared-memory", key] => call_plain(libc::SYS_shmget, &[number(key)?, 0, 0]),
        // Delays every process that opens the file for writing.
        ["lease", path] => {
            let file = File::open(path)?;
            let (number, read) = (file.as_raw_fd().into(), libc::F_RDLCK.into());
            call_plain(libc::SYS_fcntl, &[number, libc::F_SETLEASE.into(), read])
        }
        ["foreign"] => call_foreign(),
        ["mode", name, mode, path] => set_mode(name, mode, path),
        ["type"] => inject(libc::TIOCSTI as i64),
        // With upper bits of the request, which the kernel ignores.
        ["type-elsewhere"] => inject(libc::TIOCSTI as i64 | 1 << 40),
        _ => Err(io::Error::other("no such attempt")),
    };
    result.map(drop)
}

/// Makes a system call with up to six arguments; the others are 0.
///
/// # Safety
/// Arguments that the call takes as pointers must be valid for what it reads and writes there.
unsafe fn call(number: c_long, arguments: &[i64]) -> io::Result<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let [a, b, c, d, e, f] = all;
    // SAFETY: the caller guarantees that pointers are valid.
    match unsafe { libc::syscall(number, a, b, c, d, e, f) } {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

fn address<T>(pointer: *const T) -> i64 {
    pointer.expose_provenance() as i64
}

/// Reads memory of this process with the call for other processes.
fn read_memory() -> io::Result<i64> {
    let (from, mut to) = ([7_u8; 4], [0_u8; 4]);
    // `struct iovec`: address and length.
    let local = [address(to.as_mut_ptr()), 4];
    let remote = [address(from.as_ptr()), 4];
    let (local, remote) = (address(local.as_ptr()), address(remote.as_ptr()));
    let own = std::process::id().into();
    // SAFETY: both vectors have one element, for a buffer of its length.
    unsafe { call(libc::SYS_process_vm_readv, &[own, local, 1, remote, 1, 0]) }
}

/// Creates a user namespace with `clone3`, whose flags a filter can't inspect.
fn clone_namespace() -> io::Result<i64> {
    let mut arguments = [0_u64; 8];
    arguments[0] = libc::CLONE_NEWUSER as u64;
    arguments[4] = libc::SIGCHLD as u64;
    let size = size_of_val(&arguments) as i64;
    let arguments = [address(arguments.as_ptr()), size];
    // SAFETY: the structure has the given size, and the child gets a copy of the memory.
    let pid = unsafe { call(libc::SYS_clone3, &arguments) }?;
    if pid == 0 {
        // SAFETY: the child has its own memory and exits without running anything else.
        unsafe { libc::_exit(0) };
    }
    Ok(pid)
}

fn mount(path: &str) -> io::Result<i64> {
    let path = CString::new(path)?;
    let (path, tmpfs) = (address(path.as_ptr()), address(c"tmpfs".as_ptr()));
    // SAFETY: the strings are NUL-terminated and outlive the call.
    let mounted = unsafe { call(libc::SYS_mount, &[tmpfs, path, tmpfs, 0, 0]) }?;
    // A mount that can't be removed is an escape nevertheless.
    // SAFETY: as above.
    let _ = unsafe { call(libc::SYS_umount2, &[path, libc::MNT_DETACH.into()]) };
    Ok(mounted)
}

/// Queries the quota format of a file system. ESRCH, for a file system without quotas, counts as success.
fn query_quota() -> io::Result<i64> {
    let root = File::open("/")?;
    // Q_GETFMT for user quotas.
    let command = 0x80_0004 << 8;
    let mut format = 0_u32;
    let arguments = [
        root.as_raw_fd().into(),
        command,
        0,
        address(&raw mut format),
    ];
    // SAFETY: the query writes a number of the size of `format`.
    match unsafe { call(libc::SYS_quotactl_fd, &arguments) } {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(0),
        result => result,
    }
}

fn open_by_handle(path: &str) -> io::Result<i64> {
    let path = CString::new(path)?;
    // `struct file_handle`: length, type, and 120 bytes.
    let mut handle = [0_u32; 32];
    handle[0] = 120;
    let mut mount = 0_i32;
    let handle = address(handle.as_mut_ptr());
    let (cwd, path) = (libc::AT_FDCWD.into(), address(path.as_ptr()));
    let name = [cwd, path, handle, address(&raw mut mount), 0];
    // SAFETY: the path is NUL-terminated, and the handle has the length that it states.
    unsafe { call(libc::SYS_name_to_handle_at, &name) }?;
    let root = File::open("/")?;
    let arguments = [root.as_raw_fd().into(), handle, libc::O_RDONLY.into()];
    // SAFETY: as above.
    unsafe { call(libc::SYS_open_by_handle_at, &arguments) }
}

/// Calls `getpid` through the 32-bit entry point.
#[cfg(target_arch = "x86_64")]
fn call_foreign() -> io::Result<i64> {
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
        Ok(pid) if pid > 0 => Ok(number),
        Ok(errno) => Err(io::Error::from_raw_os_error(-errno)),
        Err(_) => Err(io::Error::other("not a number")),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn call_foreign() -> io::Result<i64> {
    Err(io::Error::other("no other architecture is supported"))
}

/// Sets an octal mode with the given call. Succeeds if the file has that mode afterwards.
fn set_mode(name: &str, mode: &str, path: &str) -> io::Result<i64> {
    let mode = i64::from_str_radix(mode, 8).map_err(io::Error::other)?;
    let file = CString::new(path)?;
    let (cwd, file) = (libc::AT_FDCWD.into(), address(file.as_ptr()));
    let create = (libc::O_CREAT | libc::O_WRONLY).into();
    let regular = i64::from(libc::S_IFREG) | mode;
    // SAFETY: all pointers are to NUL-terminated strings, and to a structure of the given size. They
    // live until the calls return.
    let call = |number, arguments: &[i64]| unsafe { call(number, arguments) };
    match name {
        #[cfg(target_arch = "x86_64")]
        "chmod" => call(libc::SYS_chmod, &[file, mode]),
        #[cfg(target_arch = "x86_64")]
        "mknod" => call(libc::SYS_mknod, &[file, regular, 0]),
        #[cfg(target_arch = "x86_64")]
        "creat" => call(libc::SYS_creat, &[file, mode]),
        #[cfg(target_arch = "x86_64")]
        "open" => call(libc::SYS_open, &[file, create, mode]),
        "fchmod" => {
            let opened = call(libc::SYS_openat, &[cwd, file, create, 0o700])?;
            call(libc::SYS_fchmod, &[opened, mode])
        }
        "fchmodat" => call(libc::SYS_fchmodat, &[cwd, file, mode, 0]),
        "fchmodat2" => call(libc::SYS_fchmodat2, &[cwd, file, mode, 0]),
        "mknodat" => call(libc::SYS_mknodat, &[cwd, file, regular, 0]),
        "openat" => call(libc::SYS_openat, &[cwd, file, create, mode]),
        "openat2" => {
            // `struct open_how`: flags, mode and resolution.
            let how = [create, mode, 0];
            let size = size_of_val(&how) as i64;
            call(libc::SYS_openat2, &[cwd, file, address(how.as_ptr()), size])
        }
        // An unnamed file, which is linked afterwards.
        "nameless" => {
            let directory = Path::new(path).parent().unwrap_or(Path::new(""));
            let directory = CString::new(directory.as_os_str().as_bytes())?;
            let flags = (libc::O_TMPFILE | libc::O_WRONLY).into();
            let arguments = [cwd, address(directory.as_ptr()), flags, mode];
            let opened = call(libc::SYS_openat, &arguments)?;
            let opened = CString::new(format!("/proc/self/fd/{opened}"))?;
            let (from, follow) = (address(opened.as_ptr()), libc::AT_SYMLINK_FOLLOW.into());
            call(libc::SYS_linkat, &[cwd, from, cwd, file, follow])
        }
        _ => Err(io::Error::other("no such call")),
    }?;
    match i64::from(std::fs::metadata(path)?.mode()) & 0o6000 {
        kept if kept == mode & 0o6000 => Ok(kept),
        kept => Err(io::Error::other(format!("mode {mode:o} became {kept:o}"))),
    }
}

/// Injects input into a new terminal, so that the terminal that runs the tests gets none.
fn inject(request: i64) -> io::Result<i64> {
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let name = rustix::pty::ptsname(&master, Vec::new())?;
    let _ = rustix::process::setsid();
    let slave = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
    rustix::process::ioctl_tiocsctty(&slave)?;
    let character = address(b"x".as_ptr());
    let arguments = [slave.as_raw_fd().into(), request, character];
    // SAFETY: the request reads one byte.
    let result = unsafe { call(libc::SYS_ioctl, &arguments) };
    // Closing it would send SIGHUP to this process.
    std::mem::forget(master);
    result
}
