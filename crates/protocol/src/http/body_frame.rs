//! The pieces of a body, encoded by hand for the same reason as
//! [`OutputFrame`](crate::OutputFrame).

use crate::output_frame::{append_number, digits};
use crate::{HTTP_BODY_DELTA, base64};

const AFTER_SEQ: &[u8] = br#","deltaBase64":""#;
const AFTER_BYTES: &[u8] = br#"","done":false,"error":null}}"#;

/// Encodes the `http/request/bodyDelta` notifications of one request, all but the last.
#[derive(Clone, Debug)]
pub struct BodyFrame {
    /// The message up to the number.
    prefix: Box<[u8]>,
}

impl BodyFrame {
    /// Prepares the frames of the request that the client calls `request_id`.
    pub fn new(request_id: &str) -> Self {
        let id = serde_json::Value::from(request_id);
        let prefix =
            format!(r#"{{"method":"{HTTP_BODY_DELTA}","params":{{"requestId":{id},"seq":"#);
        Self {
            prefix: prefix.into_bytes().into(),
        }
    }

    /// How many bytes [`encode`](Self::encode) will append, for a frame header that goes before them.
    pub fn encoded_len(&self, seq: u64, payload_len: usize) -> usize {
        self.prefix.len()
            + digits(seq)
            + AFTER_SEQ.len()
            + base64::encoded_len(payload_len)
            + AFTER_BYTES.len()
    }

    /// Appends the notification that `payload` is piece `seq` of the body.
    pub fn encode(&self, out: &mut Vec<u8>, seq: u64, payload: &[u8]) {
        out.reserve(self.encoded_len(seq, payload.len()));
        out.extend_from_slice(&self.prefix);
        append_number(out, seq);
        out.extend_from_slice(AFTER_SEQ);
        base64::encode_into(out, payload);
        out.extend_from_slice(AFTER_BYTES);
    }
}
