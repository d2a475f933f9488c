//! A program and its strings, prepared for `execve`.

use std::ffi::c_char;
use std::ptr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::sys::child_setup::SessionMode;

/// A program and how a child executes it. Also the message that makes a subreaper start it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Program {
    /// The paths to try, in order. Relative ones are resolved in the child, in its working directory.
    pub(crate) candidates: Strings,
    pub(crate) argv: Strings,
    pub(crate) env: Strings,
    /// One string, or none to keep the working directory.
    pub(crate) cwd: Strings,
    pub(crate) session_mode: SessionMode,
    /// Whether it starts with all signals ignored, except SIGCHLD.
    pub(crate) ignore_signals: bool,
    /// The soft and hard limit on open files, instead of the parent's.
    pub(crate) open_files: Option<(u64, u64)>,
}

/// Consecutive NUL-terminated strings. Pointers are created only for the clone, so that the value can be
/// sent between threads.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

/// A string contains a NUL byte.
#[derive(Debug)]
pub(crate) struct HasNul;

impl Strings {
    /// Appends the concatenation of `parts` as one string, or nothing if one of them has a NUL byte.
    pub(crate) fn push(&mut self, parts: &[&[u8]]) -> Result<(), HasNul> {
        if parts.iter().any(|part| part.contains(&0)) {
            return Err(HasNul);
        }
        self.starts.push(self.bytes.len());
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.bytes.push(0);
        Ok(())
    }

    /// All strings with their terminators, for [`Strings::from_bytes`].
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Parses the result of [`Strings::bytes`]. Returns `None` if the last string is not terminated.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let after_each = |(at, byte): (usize, &u8)| (*byte == 0).then_some(at + 1);
        let mut starts = vec![0];
        starts.extend(bytes.iter().enumerate().filter_map(after_each));
        // No string starts after the last terminator.
        (starts.pop() == Some(bytes.len())).then(|| Self {
            bytes: bytes.to_vec(),
            starts,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Pointers to all strings and a terminating null pointer, for `execve`. Valid until `self` is
    /// modified or dropped.
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

impl Serialize for Strings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.bytes)
    }
}

impl<'de> Deserialize<'de> for Strings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <&[u8]>::deserialize(deserializer)?;
        Self::from_bytes(bytes).ok_or_else(|| D::Error::custom("the last string is not terminated"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip() {
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
