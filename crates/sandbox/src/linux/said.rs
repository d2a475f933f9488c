//! What bubblewrap and the stage say of themselves, apart from what the program writes.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::PipeFlags;

/// Our end of where they speak.
#[derive(Debug)]
pub struct Said(OwnedFd);

impl Said {
    /// Opens one; the other end is for bubblewrap.
    pub(super) fn open() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        Ok((Self(ours), theirs))
    }

    /// What was said by now, but no more than so many bytes of it.
    #[must_use]
    pub fn heard(self, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        // They say it all at once, and nobody waits for more.
        let length = rustix::io::read(&self.0, &mut bytes).unwrap_or_default();
        bytes.truncate(length);
        bytes
    }
}
