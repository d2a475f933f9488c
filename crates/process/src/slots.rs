//! A few low descriptors that one spawner thread hands its children's streams through.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::{DupFlags, Errno};

use crate::command::MOST_CARRIED;

/// How many there can be: three streams, what a carrier is given, and the streams of what it carries.
pub(crate) const SLOTS: usize = 3 + MOST_CARRIED + 3;

/// Numbers reserved when the thread starts, when few descriptors are open. A child copies
/// only the part of our table up to the highest number it needs, and would copy thousands of
/// entries in a server with a thousand processes if it took its streams from where they are.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Ascending. At rest they are `/dev/null`.
    reserved: [OwnedFd; SLOTS],
}

/// Slots that hold a child's streams; at rest again when this is dropped.
pub(crate) struct Filled<'a> {
    slots: &'a mut Slots,
    passed: usize,
    null: BorrowedFd<'a>,
}

impl Slots {
    pub(crate) fn new(null: BorrowedFd<'_>) -> Result<Self, Errno> {
        // Above all that a child puts in its place, so that it can do so without treading on another.
        let reserve = || rustix::io::fcntl_dupfd_cloexec(null, SLOTS as i32);
        let reserved = std::iter::repeat_with(reserve).take(SLOTS);
        let reserved: Vec<_> = reserved.collect::<Result<_, _>>()?;
        let reserved = reserved.try_into().map_err(|_| Errno::INVAL)?;
        Ok(Self { reserved })
    }

    /// Puts a child's ends into the slots. They stay open there until what is returned is dropped.
    pub(crate) fn fill<'a>(
        &'a mut self,
        ends: [BorrowedFd<'_>; 3],
        passed: &[BorrowedFd<'_>],
        null: BorrowedFd<'a>,
    ) -> Result<Filled<'a>, Errno> {
        let filled = Filled {
            slots: self,
            passed: passed.len().min(SLOTS - 3),
            null,
        };
        let ends = ends.iter().chain(passed);
        for (slot, end) in filled.slots.reserved.iter_mut().zip(ends) {
            rustix::io::dup3(*end, slot, DupFlags::CLOEXEC)?;
        }
        Ok(filled)
    }
}

impl Filled<'_> {
    /// What is to become 0, 1 and 2.
    pub(crate) fn numbers(&self) -> [RawFd; 3] {
        let [a, b, c, ..] = self.slots.reserved.each_ref().map(OwnedFd::as_raw_fd);
        [a, b, c]
    }

    /// What is to become 3 and so on.
    pub(crate) fn passed(&self) -> Vec<RawFd> {
        let passed = self.slots.reserved[3..].iter().take(self.passed);
        passed.map(OwnedFd::as_raw_fd).collect()
    }
}

impl Drop for Filled<'_> {
    fn drop(&mut self) {
        for slot in &mut self.slots.reserved {
            // Putting one open descriptor in the place of another allocates nothing.
            if let Err(error) = rustix::io::dup3(self.null, slot, DupFlags::CLOEXEC) {
                tracing::error!(%error, "a spawner's descriptor can't be put to rest");
            }
        }
    }
}
