//! The answer to `fs/readFile`, made while the file is read.
//!
//! It may be hundreds of megabytes long, so it is written once, straight into the message: no copy of
//! the file, none of its base64. A property test holds it to what serde gives for
//! [`FsReadFileResult`](super::FsReadFileResult).

use std::collections::TryReserveError;

use crate::{RequestId, base64};

const AFTER_ID: &[u8] = br#","result":{"dataBase64":""#;
const END: &[u8] = br#""}}"#;

/// An answer that isn't complete yet.
#[derive(Debug)]
pub struct ReadFileAnswer {
    message: Vec<u8>,
}

impl ReadFileAnswer {
    /// Every block but the last has a multiple of so many bytes: base64 has no padding in the middle.
    pub const BLOCK_UNIT: usize = 3;

    /// The beginning of an answer to `id`, with room for a file of `expected` bytes.
    pub fn new(id: &RequestId, expected: usize) -> Result<Self, TryReserveError> {
        let id = serde_json::to_vec(id).unwrap_or_default();
        let mut message = Vec::new();
        let others = br#"{"id":"#.len() + id.len() + AFTER_ID.len() + END.len();
        message.try_reserve_exact(base64::encoded_len(expected).saturating_add(others))?;
        message.extend_from_slice(br#"{"id":"#);
        message.extend_from_slice(&id);
        message.extend_from_slice(AFTER_ID);
        Ok(Self { message })
    }

    /// The next bytes of the file.
    pub fn push(&mut self, block: &[u8]) {
        base64::encode_into(&mut self.message, block);
    }

    /// The message.
    pub fn finish(mut self) -> Vec<u8> {
        self.message.extend_from_slice(END);
        self.message
    }
}
