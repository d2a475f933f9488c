//! Injects input into a terminal.
#![expect(unsafe_code, reason = "the request has no safe wrapper")]

use std::io;
use std::os::fd::AsRawFd;

use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;

pub(crate) fn inject() -> io::Result<()> {
    inject_with(libc::TIOCSTI)
}

/// Sets upper bits of the request, which the kernel ignores.
pub(crate) fn inject_with_high_bits() -> io::Result<()> {
    inject_with(libc::TIOCSTI | 1 << 40)
}

/// Uses a new terminal, so that the one that runs the tests gets no input.
fn inject_with(command: libc::c_ulong) -> io::Result<()> {
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let name = rustix::pty::ptsname(&master, Vec::new())?;
    let _ = rustix::process::setsid();
    let slave = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
    rustix::process::ioctl_tiocsctty(&slave)?;
    let character = b'x';
    // SAFETY: `character` is valid for reads.
    let result = unsafe {
        libc::syscall(
            libc::SYS_ioctl,
            slave.as_raw_fd(),
            command,
            &raw const character,
        )
    };
    // Closing it would send SIGHUP to this process.
    std::mem::forget(master);
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
