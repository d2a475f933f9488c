//! The encoder of the response to `fs/readFile`, while the file is read.
//!
//! The response may be hundreds of megabytes long, so it is encoded straight into the message,
//! without a copy of the file or its base64. A property test compares it with serde and
//! [`FsReadFileResult`](super::FsReadFileResult).

use std::collections::TryReserveError;

use crate::{RequestId, base64};

const AFTER_ID: &[u8] = br#","result":{"dataBase64":""#;
const END: &[u8] = br#""}}"#;

/// An incomplete response.
#[derive(Debug)]
pub struct ReadFileAnswer {
    message: Vec<u8>,
}

impl ReadFileAnswer {
    /// The length of every block but the last must be a multiple of this, because base64 has padding
    /// only at the end.
    pub const BLOCK_UNIT: usize = 3;

    /// Begins the response to `id`, with space for a file of `expected` bytes.
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

    /// Appends the next bytes of the file.
    pub fn push(&mut self, block: &[u8]) {
        base64::encode_into(&mut self.message, block);
    }

    /// Returns the message.
    pub fn finish(mut self) -> Vec<u8> {
        self.message.extend_from_slice(END);
        self.message
    }
}
