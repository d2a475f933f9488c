//! Serializes paths and other system strings as bytes, for use with `#[serde(with)]`.
//!
//! Serde's own encodings reject paths that aren't UTF-8, and are slow for `Vec<u8>`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<T: AsRef<OsStr>, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(value.as_ref().as_bytes())
}

pub(crate) fn deserialize<'de, T: From<OsString>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let bytes = <&[u8]>::deserialize(deserializer)?;
    Ok(OsStr::from_bytes(bytes).to_owned().into())
}
