//! Fallible allocation for sizes that a client chooses.
//!
//! Small allocations abort the program on failure, as usual. Large ones that a client causes are
//! tried first, so that only that client gets an error.

use std::collections::TryReserveError;
use std::io;

/// `ENOMEM` on every architecture of Linux.
const ENOMEM: i32 = 12;

/// An allocation failed. The text is that of `ENOMEM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", io::Error::from_raw_os_error(ENOMEM))]
pub struct NoMemory;

impl NoMemory {
    /// Checks that `bytes` can be allocated now, without keeping them. For values that are built by
    /// code that can't report a failed allocation.
    pub fn unless_space_for(bytes: usize) -> Result<(), Self> {
        Vec::<u8>::new().try_reserve_exact(bytes)?;
        Ok(())
    }
}

impl From<TryReserveError> for NoMemory {
    fn from(_: TryReserveError) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_that_of_the_system() {
        assert_eq!(NoMemory.to_string(), "Cannot allocate memory (os error 12)");
    }

    #[test]
    fn impossible_size_is_rejected() {
        assert_eq!(NoMemory::unless_space_for(1 << 20), Ok(()));
        assert_eq!(NoMemory::unless_space_for(1 << 60), Err(NoMemory));
    }
}
