//! Blocks of files, encoded by hand.
//!
//! A copy is made of nothing but these two messages. By way of serde each of their characters is
//! looked at once more, for something to escape, and base64 has nothing of the kind. A property test
//! pins both to what serde gives.

use crate::method::Method;
use crate::{RequestId, base64};

/// Room for what is in a message besides its block.
const REST_BYTES: usize = 256;

/// Appends a request for `fs/writeBlock`.
pub fn encode_write_block(out: &mut Vec<u8>, id: i64, handle_id: &str, offset: u64, chunk: &[u8]) {
    let method = Method::FsWriteBlock.name();
    let handle_id = serde_json::Value::from(handle_id);
    let head = format!(
        r#"{{"id":{id},"method":"{method}","params":{{"handleId":{handle_id},"offset":{offset},"chunk":""#
    );
    out.reserve_exact(head.len() + base64::encoded_len(chunk.len()) + REST_BYTES);
    out.extend_from_slice(head.as_bytes());
    base64::encode_into(out, chunk);
    out.extend_from_slice(br#""}}"#);
}

/// Appends the answer to an `fs/readBlock`.
pub fn encode_read_block(out: &mut Vec<u8>, id: &RequestId, chunk: &[u8], eof: bool) {
    let id = match id {
        RequestId::Integer(id) => id.to_string(),
        RequestId::Text(id) => serde_json::Value::from(id.as_str()).to_string(),
    };
    out.reserve_exact(id.len() + base64::encoded_len(chunk.len()) + REST_BYTES);
    out.extend_from_slice(format!(r#"{{"id":{id},"result":{{"chunk":""#).as_bytes());
    base64::encode_into(out, chunk);
    out.extend_from_slice(format!(r#"","eof":{eof}}}}}"#).as_bytes());
}
