//! Files that are created for bubblewrap and the helper.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;

use rustix::fs::MemfdFlags;
use rustix::pipe::PipeFlags;

/// Creates a memfd with this content, positioned at its start.
pub(super) fn memfd(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create(
        "helper-config",
        MemfdFlags::CLOEXEC,
    )?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// Creates a pipe for the stderr of bubblewrap and the helper, which is separate from the program's. The
/// first end doesn't block when it is read.
pub(super) fn stderr_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    Ok((ours, theirs))
}
