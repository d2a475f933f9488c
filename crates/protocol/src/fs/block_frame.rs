//! Encoders of file blocks.
//!
//! Copying files consists of these two messages. Serde would scan each character for escapes, which
//! base64 never needs. A property test compares both with serde.

use crate::method::Method;
use crate::{RequestId, base64};

/// Space for the message around its block.
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

/// Appends the response to an `fs/readBlock`.
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
