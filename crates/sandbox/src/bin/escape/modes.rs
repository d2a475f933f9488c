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

/// Paths are absolute.
const HERE: isize = libc::AT_FDCWD as isize;

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
    let here = HERE.cast_unsigned();
    let path = name.as_ptr().expose_provenance();
    let (create, mode) = (CREATE.cast_unsigned() as usize, mode as usize);
    let regular = libc::S_IFREG as usize | mode;
    let how = How {
        flags: create as u64,
        mode: mode as u64,
        resolve: 0,
    };
    let how_at = (&raw const how).expose_provenance();
    let (number, arguments) = match way {
        #[cfg(target_arch = "x86_64")]
        "chmod" => (libc::SYS_chmod, [path, mode, 0, 0]),
        #[cfg(target_arch = "x86_64")]
        "mknod" => (libc::SYS_mknod, [path, regular, 0, 0]),
        #[cfg(target_arch = "x86_64")]
        "creat" => (libc::SYS_creat, [path, mode, 0, 0]),
        #[cfg(target_arch = "x86_64")]
        "open" => (libc::SYS_open, [path, create, mode, 0]),
        "fchmod" => {
            let file = call(libc::SYS_openat, [here, path, create, 0o700])?;
            let file = usize::try_from(file).map_err(io::Error::other)?;
            (libc::SYS_fchmod, [file, mode, 0, 0])
        }
        "fchmodat" => (libc::SYS_fchmodat, [here, path, mode, 0]),
        "fchmodat2" => (libc::SYS_fchmodat2, [here, path, mode, 0]),
        "mknodat" => (libc::SYS_mknodat, [here, path, regular, 0]),
        "openat" => (libc::SYS_openat, [here, path, create, mode]),
        "openat2" => (libc::SYS_openat2, [here, path, how_at, size_of::<How>()]),
        _ => return Err(io::Error::other("no such way")),
    };
    call(number, arguments).map(drop)
}

/// A file that gets its name only when it has its mode.
fn nameless(name: &Path, mode: c_uint) -> io::Result<()> {
    let flags = (libc::O_TMPFILE | libc::O_WRONLY).cast_unsigned() as usize;
    let folder = name.parent().map(Path::as_os_str).unwrap_or_default();
    let folder = CString::new(folder.as_bytes())?;
    let place = folder.as_ptr().expose_provenance();
    let arguments = [HERE.cast_unsigned(), place, flags, mode as usize];
    let file = format!("/proc/self/fd/{}", call(libc::SYS_openat, arguments)?);
    let (follow, cwd) = (rustix::fs::AtFlags::SYMLINK_FOLLOW, rustix::fs::CWD);
    Ok(rustix::fs::linkat(cwd, file, cwd, name, follow)?)
}

/// One of the calls above. Whatever an argument points to lives in whoever calls.
fn call(number: c_long, [a, b, c, d]: [usize; 4]) -> io::Result<c_long> {
    // SAFETY: pointers are to names that end with a zero, or to what `openat2` wants, and the kernel
    // reads them alone.
    match unsafe { libc::syscall(number, a, b, c, d) } {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}
