//! The memory of a result while it is built.

use outpost_rpc::{MemoryCharge, MemoryShare};

/// The memory of a result that grows while it is built, such as a listing.
pub(crate) struct ResultMemory {
    charge: MemoryCharge,
    used: usize,
}

impl ResultMemory {
    /// Bytes that are charged at a time.
    const STEP_BYTES: usize = 16 * 1024;

    pub(crate) fn new(share: &MemoryShare) -> Self {
        ResultMemory {
            charge: share.empty_charge(),
            used: 0,
        }
    }

    /// Takes memory for further bytes if it is free.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        self.used += bytes;
        let missing = self.used.saturating_sub(self.charge.bytes());
        missing == 0 || self.charge.try_grow(missing.max(Self::STEP_BYTES))
    }

    /// Keeps the memory of `bytes`, for the complete result.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        self.used = bytes;
        self.charge.shrink_to(bytes);
    }
}
