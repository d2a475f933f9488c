//! Reserved low descriptors through which a spawner thread passes streams to its children.

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
pub(crate) struct Slots {
    /// Ascending. Unused slots refer to `/dev/null`.
    reserved: [OwnedFd; SLOTS],
}

/// Slots that hold a child's streams. Dropping this resets them to `/dev/null`.
pub(crate) struct Filled<'a> {
    slots: &'a mut Slots,
    passed: usize,
    null: BorrowedFd<'a>,
}

impl Slots {
    pub(crate) fn new(null: BorrowedFd<'_>) -> Result<Self, Errno> {
        // Above all targets of the child's `dup3` calls, so that none overwrites a slot.
        let reserve = || rustix::io::fcntl_dupfd_cloexec(null, SLOTS as i32);
        let reserved = std::iter::repeat_with(reserve).take(SLOTS);
        let reserved: Vec<_> = reserved.collect::<Result<_, _>>()?;
        let reserved = reserved.try_into().map_err(|_| Errno::INVAL)?;
        Ok(Self { reserved })
    }

    /// Duplicates a child's streams into the slots, until the returned value is dropped.
    pub(crate) fn fill<'a>(
        &'a mut self,
        streams: [BorrowedFd<'_>; 3],
        passed: &[BorrowedFd<'_>],
        null: BorrowedFd<'a>,
    ) -> Result<Filled<'a>, Errno> {
        let filled = Filled {
            slots: self,
            passed: passed.len().min(SLOTS - 3),
            null,
        };
        let sources = streams.iter().chain(passed);
        for (slot, source) in filled.slots.reserved.iter_mut().zip(sources) {
            rustix::io::dup3(*source, slot, DupFlags::CLOEXEC)?;
        }
        Ok(filled)
    }
}

impl Filled<'_> {
    /// The slots for descriptors 0, 1 and 2.
    pub(crate) fn streams(&self) -> [RawFd; 3] {
        let [a, b, c, ..] = self.slots.reserved.each_ref().map(OwnedFd::as_raw_fd);
        [a, b, c]
    }

    /// The slots for descriptors 3 and up.
    pub(crate) fn passed(&self) -> Vec<RawFd> {
        let passed = self.slots.reserved[3..].iter().take(self.passed);
        passed.map(OwnedFd::as_raw_fd).collect()
    }
}

impl Drop for Filled<'_> {
    fn drop(&mut self) {
        for slot in &mut self.slots.reserved {
            // Replacing an open descriptor allocates nothing, so this cannot run out of descriptors.
            if let Err(error) = rustix::io::dup3(self.null, slot, DupFlags::CLOEXEC) {
                tracing::error!(%error, "cannot reset a spawner slot");
            }
        }
    }
}
