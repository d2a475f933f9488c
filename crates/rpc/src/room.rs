//! Room for what comes in, asked for before it is taken.

use bytes::{Bytes, BytesMut};
use outpost_protocol::NoMemory;

/// What a connection may hold without asking: there is no way to refuse a
/// message that is smaller than what refusing it takes.
const UNASKED_BYTES: usize = 1024 * 1024;

/// Makes room for `more` bytes behind what `buffer` holds. Where it has to grow
/// large and there is no memory for that, it stays as it is.
pub(crate) fn make_room(buffer: &mut BytesMut, more: usize) -> Result<(), NoMemory> {
    let needed = buffer.len() + more;
    if needed <= UNASKED_BYTES || buffer.capacity() >= needed {
        return Ok(());
    }
    // A buffer of this kind can't be asked, a vector can; the bytes stay where
    // they are while it is one.
    let mut bytes = Vec::from(std::mem::take(buffer));
    // As much again, so that a message that comes in many pieces is moved a few
    // times only; where there isn't that much, what is needed.
    let asked = bytes
        .try_reserve(more)
        .or_else(|_| bytes.try_reserve_exact(more));
    *buffer = BytesMut::from(Bytes::from(bytes));
    Ok(asked?)
}

/// Appends `bytes`, if there is memory for that.
pub(crate) fn append(buffer: &mut BytesMut, bytes: &[u8]) -> Result<(), NoMemory> {
    make_room(buffer, bytes.len())?;
    buffer.extend_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_stays_and_nothing_is_moved() {
        let mut buffer = BytesMut::from(vec![7; UNASKED_BYTES].as_slice());
        make_room(&mut buffer, UNASKED_BYTES).expect("there is a megabyte");
        assert!(buffer.capacity() >= 2 * UNASKED_BYTES);
        assert!(buffer.iter().all(|byte| *byte == 7));
        let before = buffer.as_ptr();
        buffer.extend_from_slice(&[8; 1024]);
        assert_eq!(buffer.as_ptr(), before, "the room is really there");
    }

    #[test]
    fn without_memory_it_stays_as_it_was() {
        let mut buffer = BytesMut::from(&b"abc"[..]);
        assert_eq!(make_room(&mut buffer, 1 << 60), Err(NoMemory));
        assert_eq!(&buffer[..], b"abc");
    }
}
