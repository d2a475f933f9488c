//! System calls that can create set-user-ID and set-group-ID files.
#![expect(unsafe_code, reason = "these calls have no safe wrapper")]

use std::ffi::{CString, c_int, c_long, c_uint};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// `struct open_how` of `openat2`.
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

const CWD: isize = libc::AT_FDCWD as isize;

const CREATE: c_int = libc::O_CREAT | libc::O_WRONLY;

/// Sets an octal mode with the given call. Succeeds if the file has that mode afterwards.
pub(crate) fn set(call: &str, mode: &str, path: &str) -> io::Result<()> {
    let mode = u32::from_str_radix(mode, 8).map_err(io::Error::other)?;
    let name = CString::new(path)?;
    match call {
        "nameless" => tmpfile(Path::new(path), mode)?,
        call => set_with(call, mode, &name)?,
    }
    match std::fs::metadata(path)?.mode() & 0o6000 {
        kept if kept == mode & 0o6000 => Ok(()),
        kept => Err(io::Error::other(format!("mode {mode:o} became {kept:o}"))),
    }
}

fn set_with(call: &str, mode: c_uint, name: &CString) -> io::Result<()> {
    let cwd = CWD.cast_unsigned();
    let path = name.as_ptr().expose_provenance();
    let (create, mode) = (CREATE.cast_unsigned() as usize, mode as usize);
    let regular = libc::S_IFREG as usize | mode;
    let how = OpenHow {
        flags: create as u64,
        mode: mode as u64,
        resolve: 0,
    };
    let how_at = (&raw const how).expose_provenance();
    let (number, arguments) = match call {
        #[cfg(target_arch = "x86_64")]
        "chmod" => (libc::SYS_chmod, [path, mode, 0, 0]),
        #[cfg(target_arch = "x86_64")]
        "mknod" => (libc::SYS_mknod, [path, regular, 0, 0]),
        #[cfg(target_arch = "x86_64")]
        "creat" => (libc::SYS_creat, [path, mode, 0, 0]),
        #[cfg(target_arch = "x86_64")]
        "open" => (libc::SYS_open, [path, create, mode, 0]),
        "fchmod" => {
            let file = syscall(libc::SYS_openat, [cwd, path, create, 0o700])?;
            let file = usize::try_from(file).map_err(io::Error::other)?;
            (libc::SYS_fchmod, [file, mode, 0, 0])
        }
        "fchmodat" => (libc::SYS_fchmodat, [cwd, path, mode, 0]),
        "fchmodat2" => (libc::SYS_fchmodat2, [cwd, path, mode, 0]),
        "mknodat" => (libc::SYS_mknodat, [cwd, path, regular, 0]),
        "openat" => (libc::SYS_openat, [cwd, path, create, mode]),
        "openat2" => (libc::SYS_openat2, [cwd, path, how_at, size_of::<OpenHow>()]),
        _ => return Err(io::Error::other("no such call")),
    };
    syscall(number, arguments).map(drop)
}

/// Creates an unnamed file with a mode, and then links it.
fn tmpfile(name: &Path, mode: c_uint) -> io::Result<()> {
    let flags = (libc::O_TMPFILE | libc::O_WRONLY).cast_unsigned() as usize;
    let directory = name.parent().map(Path::as_os_str).unwrap_or_default();
    let directory = CString::new(directory.as_bytes())?;
    let path = directory.as_ptr().expose_provenance();
    let arguments = [CWD.cast_unsigned(), path, flags, mode as usize];
    let file = format!("/proc/self/fd/{}", syscall(libc::SYS_openat, arguments)?);
    let (follow, cwd) = (rustix::fs::AtFlags::SYMLINK_FOLLOW, rustix::fs::CWD);
    Ok(rustix::fs::linkat(cwd, file, cwd, name, follow)?)
}

/// Makes a system call. The caller keeps pointed-to arguments alive.
fn syscall(number: c_long, [a, b, c, d]: [usize; 4]) -> io::Result<c_long> {
    // SAFETY: pointers are to NUL-terminated paths or to an `OpenHow`, which the kernel only reads.
    match unsafe { libc::syscall(number, a, b, c, d) } {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}
