//! Serializes byte strings and paths as bytes, for use with `#[serde(with)]`.
//!
//! Serde's own encodings are slow for `Vec<u8>` and reject paths that aren't UTF-8.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

pub(crate) trait Bytes {
    fn as_bytes(&self) -> &[u8];
    fn from_bytes(bytes: Vec<u8>) -> Self;
}

impl Bytes for Vec<u8> {
    fn as_bytes(&self) -> &[u8] {
        self
    }

    fn from_bytes(bytes: Vec<u8>) -> Self {
        bytes
    }
}

impl Bytes for PathBuf {
    fn as_bytes(&self) -> &[u8] {
        self.as_os_str().as_bytes()
    }

    fn from_bytes(bytes: Vec<u8>) -> Self {
        OsString::from_vec(bytes).into()
    }
}

pub(crate) fn serialize<T: Bytes, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(value.as_bytes())
}

pub(crate) fn deserialize<'de, T: Bytes, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    struct BytesVisitor;

    impl Visitor<'_> for BytesVisitor {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("bytes")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }
    }

    let bytes = deserializer.deserialize_bytes(BytesVisitor)?;
    Ok(T::from_bytes(bytes))
}
