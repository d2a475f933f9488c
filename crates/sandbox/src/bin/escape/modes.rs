//! Ways to a file that gives its owner's rights, or its group's, to whoever runs it.
#![expect(unsafe_code, reason = "the calls that have no wrapper any more")]

use std::ffi::{CString, c_int, c_long, c_uint};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What `openat2` wants.
#[repr(C)]
struct How {
    flags: u64,
    mode: u64,
    resolve: u64,
}

const CREATE: c_int = libc::O_CREAT | libc::O_WRONLY;

/// The mode in octal, by one of the calls that take one. It has worked if the file has that mode.
pub(crate) fn give(way: &str, mode: &str, path: &str) -> io::Result<()> {
    let mode = u32::from_str_radix(mode, 8).map_err(io::Error::other)?;
    let name = CString::new(path)?;
    match way {
        "nameless" => nameless(Path::new(path), mode)?,
        way => by(way, mode, &name)?,
    }
    match std::fs::metadata(path)?.mode() & 0o6000 {
        kept if kept == mode & 0o6000 => Ok(()),
        kept => Err(io::Error::other(format!("{kept:o} is left of {mode:o}"))),
    }
}

fn by(way: &str, mode: c_uint, name: &CString) -> io::Result<()> {
    let here = libc::AT_FDCWD;
    let name = name.as_ptr();
    let regular = libc::S_IFREG | mode;
    // SAFETY: all of these read a name that ends with a zero, and numbers.
    let made = unsafe {
        match way {
            #[cfg(target_arch = "x86_64")]
            "chmod" => libc::syscall(libc::SYS_chmod, name, mode),
            #[cfg(target_arch = "x86_64")]
            "mknod" => libc::syscall(libc::SYS_mknod, name, regular, 0),
            #[cfg(target_arch = "x86_64")]
            "creat" => libc::syscall(libc::SYS_creat, name, mode),
            #[cfg(target_arch = "x86_64")]
            "open" => libc::syscall(libc::SYS_open, name, CREATE, mode),
            "fchmod" => {
                let file = check(libc::syscall(libc::SYS_openat, here, name, CREATE, 0o700))?;
                libc::syscall(libc::SYS_fchmod, file, mode)
            }
            "fchmodat" => libc::syscall(libc::SYS_fchmodat, here, name, mode),
            "fchmodat2" => libc::syscall(libc::SYS_fchmodat2, here, name, mode, 0),
            "mknodat" => libc::syscall(libc::SYS_mknodat, here, name, regular, 0),
            "openat" => libc::syscall(libc::SYS_openat, here, name, CREATE, mode),
            "openat2" => {
                let how = How {
                    flags: u64::from(CREATE.cast_unsigned()),
                    mode: mode.into(),
                    resolve: 0,
                };
                let size = size_of::<How>();
                libc::syscall(libc::SYS_openat2, here, name, &raw const how, size)
            }
            _ => return Err(io::Error::other("no such way")),
        }
    };
    check(made).map(drop)
}

/// A file that gets its name only when it has its mode.
fn nameless(name: &Path, mode: c_uint) -> io::Result<()> {
    let (here, flags) = (libc::AT_FDCWD, libc::O_TMPFILE | libc::O_WRONLY);
    let folder = name.parent().map(Path::as_os_str).unwrap_or_default();
    let folder = CString::new(folder.as_bytes())?;
    // SAFETY: the name ends with a zero.
    let file = unsafe { libc::syscall(libc::SYS_openat, here, folder.as_ptr(), flags, mode) };
    let file = format!("/proc/self/fd/{}", check(file)?);
    let (follow, cwd) = (rustix::fs::AtFlags::SYMLINK_FOLLOW, rustix::fs::CWD);
    Ok(rustix::fs::linkat(cwd, file, cwd, name, follow)?)
}

fn check(result: c_long) -> io::Result<c_long> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}
