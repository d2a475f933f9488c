//! The system has no memory for something whose size a client chose.
//!
//! Small things are allocated as in every program, and end it when there is nothing left at all. What
//! a client makes large is asked for first, so that only that client hears of it.

use std::collections::TryReserveError;
use std::fmt;
use std::io;

/// What the system calls it, on every architecture of Linux.
const ENOMEM: i32 = 12;

/// There is no memory for it; says so in the system's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

impl NoMemory {
    /// Whether so many bytes could be had at this moment. They are not held: this is for what is
    /// built by others, who can't be told that there is none.
    pub fn unless_room_for(bytes: usize) -> Result<(), Self> {
        Vec::<u8>::new().try_reserve_exact(bytes)?;
        Ok(())
    }
}

impl From<TryReserveError> for NoMemory {
    fn from(_: TryReserveError) -> Self {
        Self
    }
}

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        io::Error::from_raw_os_error(ENOMEM).fmt(f)
    }
}

impl std::error::Error for NoMemory {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speaks_in_the_systems_words() {
        assert_eq!(NoMemory.to_string(), "Cannot allocate memory (os error 12)");
    }

    #[test]
    fn more_than_there_can_be_is_not_there() {
        assert_eq!(NoMemory::unless_room_for(1 << 20), Ok(()));
        assert_eq!(NoMemory::unless_room_for(1 << 60), Err(NoMemory));
    }
}
