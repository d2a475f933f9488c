//! Fallible growth of the buffer of received bytes.

use bytes::{Bytes, BytesMut};
use outpost_protocol::NoMemory;

/// Size up to which a buffer grows without a check. Below it, reporting the failure
/// would need more memory than the message.
const UNCHECKED_BYTES: usize = 1024 * 1024;

/// Reserves `more` bytes after the contents of `buffer`. The contents are unchanged if
/// the allocation fails.
pub(crate) fn reserve(buffer: &mut BytesMut, more: usize) -> Result<(), NoMemory> {
    let needed = buffer.len() + more;
    if needed <= UNCHECKED_BYTES || buffer.capacity() >= needed {
        return Ok(());
    }
    // `BytesMut` has no fallible reserve; `Vec` has, and the conversions do not copy.
    let mut bytes = Vec::from(std::mem::take(buffer));
    // Amortized growth first, so that a message in many reads is moved only a few times.
    let reserved = bytes
        .try_reserve(more)
        .or_else(|_| bytes.try_reserve_exact(more));
    *buffer = BytesMut::from(Bytes::from(bytes));
    Ok(reserved?)
}

/// Appends `bytes`, or fails if there is no memory for them.
pub(crate) fn append(buffer: &mut BytesMut, bytes: &[u8]) -> Result<(), NoMemory> {
    reserve(buffer, bytes.len())?;
    buffer.extend_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserve_keeps_contents_and_prevents_moves() {
        let mut buffer = BytesMut::from(vec![7; UNCHECKED_BYTES].as_slice());
        reserve(&mut buffer, UNCHECKED_BYTES).expect("a megabyte is available");
        assert!(buffer.capacity() >= 2 * UNCHECKED_BYTES);
        assert!(buffer.iter().all(|byte| *byte == 7));
        let before = buffer.as_ptr();
        buffer.extend_from_slice(&[8; 1024]);
        assert_eq!(buffer.as_ptr(), before, "the capacity is really there");
    }

    #[test]
    fn failed_reserve_keeps_contents() {
        let mut buffer = BytesMut::from(&b"abc"[..]);
        assert_eq!(reserve(&mut buffer, 1 << 60), Err(NoMemory));
        assert_eq!(&buffer[..], b"abc");
    }
}
