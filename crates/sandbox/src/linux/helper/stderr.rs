//! The stderr of bubblewrap and the helper, separate from the program's.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::PipeFlags;

/// The server's end of the helper's stderr.
#[derive(Debug)]
pub(in crate::linux) struct HelperStderr(OwnedFd);

impl HelperStderr {
    /// Creates a pipe; the second end is for bubblewrap.
    pub(in crate::linux) fn open() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        Ok((Self(ours), theirs))
    }

    /// Returns up to `max` bytes that were written so far.
    pub(in crate::linux) fn read(self, max: usize) -> Vec<u8> {
        let mut bytes = vec![0; max];
        // Bubblewrap and the helper write their message at once, so one read gets it.
        let length = rustix::io::read(&self.0, &mut bytes).unwrap_or_default();
        bytes.truncate(length);
        bytes
    }
}
