//! Encoding of the private messages between the server and its helper.
//!
//! A message is a version byte followed by postcard. Both ends are the same binary; the version
//! guards against a helper that was replaced while the server was running.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;

const VERSION: u8 = 4;

pub(super) fn encode<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    postcard::to_allocvec(&(VERSION, message)).map_err(io::Error::other)
}

/// Returns none if the message has another version, is truncated, or has trailing bytes.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (version, rest) = bytes.split_first()?;
    if *version != VERSION {
        return None;
    }
    match postcard::take_from_bytes(rest) {
        Ok((message, [])) => Some(message),
        _ => None,
    }
}
