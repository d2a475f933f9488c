//! The encoder of `http/request/bodyDelta`, by hand for the same reason as
//! [`OutputFrame`](crate::OutputFrame).

use crate::output_frame::{append_number, digits};
use crate::{HTTP_BODY_DELTA, base64};

const AFTER_SEQ: &[u8] = br#","deltaBase64":""#;
const AFTER_BYTES: &[u8] = br#"","done":false,"error":null}}"#;

/// Encodes the `http/request/bodyDelta` notifications of one request, all but the last.
#[derive(Clone, Debug)]
pub struct BodyFrame {
    /// The part before the number.
    prefix: Box<[u8]>,
}

impl BodyFrame {
    /// Prepares the encoder for a request.
    pub fn new(request_id: &str) -> Self {
        let id = serde_json::Value::from(request_id);
        let prefix =
            format!(r#"{{"method":"{HTTP_BODY_DELTA}","params":{{"requestId":{id},"seq":"#);
        Self {
            prefix: prefix.into_bytes().into(),
        }
    }

    /// The number of bytes that [`encode`](Self::encode) appends, for a frame header before them.
    pub fn encoded_len(&self, seq: u64, payload_len: usize) -> usize {
        self.prefix.len()
            + digits(seq)
            + AFTER_SEQ.len()
            + base64::encoded_len(payload_len)
            + AFTER_BYTES.len()
    }

    /// Appends the notification for chunk `seq` of the body.
    pub fn encode(&self, out: &mut Vec<u8>, seq: u64, payload: &[u8]) {
        out.reserve(self.encoded_len(seq, payload.len()));
        out.extend_from_slice(&self.prefix);
        append_number(out, seq);
        out.extend_from_slice(AFTER_SEQ);
        base64::encode_into(out, payload);
        out.extend_from_slice(AFTER_BYTES);
    }
}
