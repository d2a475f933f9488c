//! Typing into a terminal as if somebody sat there.
#![expect(unsafe_code, reason = "nobody wraps these calls")]

use std::io;
use std::os::fd::AsRawFd;

use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;

pub(crate) fn type_for_others() -> io::Result<()> {
    type_with(libc::TIOCSTI)
}

/// The kernel looks at the lower half of the number alone.
pub(crate) fn type_with_high_bits() -> io::Result<()> {
    type_with(libc::TIOCSTI | 1 << 40)
}

/// On a terminal of its own, so that whoever runs the tests gets no letters.
fn type_with(command: libc::c_ulong) -> io::Result<()> {
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let name = rustix::pty::ptsname(&master, Vec::new())?;
    let _ = rustix::process::setsid();
    let slave = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
    rustix::process::ioctl_tiocsctty(&slave)?;
    let letter = b'x';
    // SAFETY: the letter is valid for reads.
    let result = unsafe {
        libc::syscall(
            libc::SYS_ioctl,
            slave.as_raw_fd(),
            command,
            &raw const letter,
        )
    };
    // Closing it before we end would hang up on us.
    std::mem::forget(master);
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
