//! Reserved low descriptors through which a spawner thread passes streams to its children.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::{DupFlags, Errno};

use crate::command::MAX_PASSED_FDS;

/// The number of slots: three streams, the descriptors passed to a wrapper, and the streams of the
/// program it wraps.
pub(crate) const SLOTS: usize = 3 + MAX_PASSED_FDS + 3;

/// Descriptors reserved when the thread starts, while few are open. A child copies only the part of
/// the descriptor table up to the highest number it needs. Without the slots it would copy thousands of
/// entries in a server with a thousand processes.
#[derive(Debug)]
pub(crate) struct DescriptorSlots {
    /// Ascending. Unused slots refer to `/dev/null`.
    reserved: Vec<OwnedFd>,
}

/// DescriptorSlots that hold a child's descriptors. Dropping this resets them to `/dev/null`.
pub(crate) struct FilledSlots<'a> {
    slots: &'a mut [OwnedFd],
    null: BorrowedFd<'a>,
}

impl DescriptorSlots {
    pub(crate) fn new(null: BorrowedFd<'_>) -> io::Result<Self> {
        // Above all targets of the child's `dup3` calls, so that none overwrites a slot.
        let reserve = || rustix::io::fcntl_dupfd_cloexec(null, SLOTS as i32);
        let reserved = std::iter::repeat_with(reserve).take(SLOTS);
        let reserved = reserved.collect::<Result<_, _>>()?;
        Ok(Self { reserved })
    }

    /// Duplicates a child's descriptors into the slots, until the returned value is dropped.
    pub(crate) fn fill<'a>(
        &'a mut self,
        sources: &[BorrowedFd<'_>],
        null: BorrowedFd<'a>,
    ) -> io::Result<FilledSlots<'a>> {
        let slots = self.reserved.get_mut(..sources.len());
        let slots = slots.ok_or(Errno::MFILE)?;
        let filled = FilledSlots { slots, null };
        for (slot, source) in filled.slots.iter_mut().zip(sources) {
            rustix::io::dup3(*source, slot, DupFlags::CLOEXEC)?;
        }
        Ok(filled)
    }
}

impl FilledSlots<'_> {
    /// The slots, in the order of the child's descriptors.
    pub(crate) fn fds(&self) -> Vec<RawFd> {
        self.slots.iter().map(OwnedFd::as_raw_fd).collect()
    }
}

impl Drop for FilledSlots<'_> {
    fn drop(&mut self) {
        for slot in &mut *self.slots {
            // Replacing an open descriptor allocates nothing, so this cannot run out of descriptors.
            if let Err(error) = rustix::io::dup3(self.null, slot, DupFlags::CLOEXEC) {
                tracing::error!(%error, "cannot reset a spawner slot");
            }
        }
    }
}
