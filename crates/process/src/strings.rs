//! Many C strings in one allocation.

use std::ffi::c_char;
use std::ptr;

/// NUL-terminated strings, one after the other. Pointers are made only when the child is cloned,
/// so the whole can travel between threads.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

/// A piece contains a NUL byte.
pub(crate) struct HasNul;

impl Strings {
    /// Appends one string made of `pieces`; nothing is appended if one of them has a NUL byte.
    pub(crate) fn push(&mut self, pieces: &[&[u8]]) -> Result<(), HasNul> {
        if pieces.iter().any(|piece| piece.contains(&0)) {
            return Err(HasNul);
        }
        self.starts.push(self.bytes.len());
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        self.bytes.push(0);
        Ok(())
    }

    /// All strings with their ends, as [`Strings::from_bytes`] wants them.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What [`Strings::bytes`] gave, on the other side of a socket; none if the last string has no
    /// end.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let after_each = |(at, byte): (usize, &u8)| (*byte == 0).then_some(at + 1);
        let mut starts = vec![0];
        starts.extend(bytes.iter().enumerate().filter_map(after_each));
        // Behind the last end nothing starts.
        (starts.pop() == Some(bytes.len())).then(|| Self {
            bytes: bytes.to_vec(),
            starts,
        })
    }

    /// Pointers to all strings and a null pointer behind them, as `execve` wants them. They live
    /// as long as `self` is neither changed nor dropped.
    pub(crate) fn pointers(&self) -> Vec<*const c_char> {
        let mut pointers = Vec::with_capacity(self.starts.len() + 1);
        for start in &self.starts {
            pointers.push(self.bytes[*start..].as_ptr().cast());
        }
        pointers.push(ptr::null());
        pointers
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.starts.iter().map(|start| {
            let rest = &self.bytes[*start..];
            let end = rest.iter().position(|byte| *byte == 0);
            &rest[..end.expect("every string is terminated")]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_survive_a_socket() {
        let mut strings = Strings::default();
        for text in ["a", "", "bc"] {
            assert!(strings.push(&[text.as_bytes()]).is_ok());
        }
        let copy = Strings::from_bytes(strings.bytes()).expect("every string is terminated");
        assert_eq!(copy.iter().collect::<Vec<_>>(), [&b"a"[..], b"", b"bc"]);
        let none = Strings::from_bytes(b"").expect("nothing is unfinished");
        assert_eq!(none.iter().count(), 0);
        assert!(Strings::from_bytes(b"a\0b").is_none());
    }
}
