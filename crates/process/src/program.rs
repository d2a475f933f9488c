//! A program and its strings, prepared for `execve`.

use std::ffi::{CStr, c_char};
use std::{io, ptr};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::rlimits::Rlimits;
use crate::sys::child_setup::SessionMode;

/// A program and how a child executes it. Also the message that makes a subreaper start it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Program {
    /// The paths to try, in order. Relative paths are resolved in the child, in its working directory.
    pub(crate) candidates: Strings,
    pub(crate) argv: Strings,
    pub(crate) env: Strings,
    /// One string, or none to keep the working directory.
    pub(crate) cwd: Strings,
    pub(crate) session_mode: SessionMode,
    /// Whether it starts with all signals ignored, except SIGCHLD.
    pub(crate) ignore_signals: bool,
    /// Limits instead of the parent's.
    pub(crate) rlimits: Rlimits,
}

/// Consecutive NUL-terminated strings. Pointers are created only for the clone, so that the value can be
/// sent between threads.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    bytes: Vec<u8>,
}

/// A string contains a NUL byte.
#[derive(Debug)]
pub(crate) struct HasNul;

impl From<HasNul> for io::Error {
    fn from(_: HasNul) -> Self {
        io::ErrorKind::InvalidInput.into()
    }
}

impl Strings {
    /// Appends the concatenation of `parts` as one string, or nothing if one of them has a NUL byte.
    pub(crate) fn push(&mut self, parts: &[&[u8]]) -> Result<(), HasNul> {
        if parts.iter().any(|part| part.contains(&0)) {
            return Err(HasNul);
        }
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
        matches!(bytes.last(), None | Some(0)).then(|| Self {
            bytes: bytes.to_vec(),
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Pointers to all strings and a terminating null pointer, for `execve`. Valid until `self` is
    /// modified or dropped.
    pub(crate) fn pointers(&self) -> Vec<*const c_char> {
        let mut pointers = Vec::new();
        let mut rest = &self.bytes[..];
        while let Ok(string) = CStr::from_bytes_until_nul(rest) {
            pointers.push(string.as_ptr());
            rest = &rest[string.count_bytes() + 1..];
        }
        pointers.push(ptr::null());
        pointers
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let strings = self.bytes.split_inclusive(|byte| *byte == 0);
        strings.map(|string| &string[..string.len() - 1])
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
