//! The encoder of `outputDelta` notifications, by hand for the same reason as
//! [`OutputFrame`](crate::OutputFrame).

use crate::{COMMAND_OUTPUT_DELTA, PROCESS_OUTPUT_DELTA, Stream, base64};

/// Encodes the `outputDelta` notifications of one process.
#[derive(Clone, Debug)]
pub struct OutputDeltaEncoder {
    /// The part before the name of the stream.
    prefix: Box<[u8]>,
    /// The part between that name and the bytes.
    before_bytes: &'static [u8],
    /// The part after the bytes, before and after the cap is reached.
    after_bytes: [&'static [u8]; 2],
}

const DELTA: &[u8] = br#"","deltaBase64":""#;
const CHUNK: &[u8] = br#"","chunk":""#;
const WITH_CAP: [&[u8]; 2] = [br#"","capReached":false}}"#, br#"","capReached":true}}"#];
const WITHOUT_CAP: [&[u8]; 2] = [br#""}}"#; 2];

impl OutputDeltaEncoder {
    /// Encodes like [`SpawnOutput`](crate::SpawnOutput).
    pub fn spawn(handle: &str) -> Self {
        Self::new(
            PROCESS_OUTPUT_DELTA,
            "processHandle",
            handle,
            DELTA,
            WITH_CAP,
        )
    }

    /// Encodes like [`CommandOutput`](crate::CommandOutput).
    pub fn command(id: &str) -> Self {
        Self::new(COMMAND_OUTPUT_DELTA, "processId", id, DELTA, WITH_CAP)
    }

    /// Encodes like [`V0Output`](crate::V0Output), which has no caps.
    pub fn v0(id: &str) -> Self {
        Self::new(COMMAND_OUTPUT_DELTA, "processId", id, CHUNK, WITHOUT_CAP)
    }

    fn new(
        method: &str,
        key: &str,
        id: &str,
        before_bytes: &'static [u8],
        after_bytes: [&'static [u8]; 2],
    ) -> Self {
        let id = serde_json::Value::from(id);
        let prefix = format!(r#"{{"method":"{method}","params":{{"{key}":{id},"stream":""#);
        Self {
            prefix: prefix.into_bytes().into(),
            before_bytes,
            after_bytes,
        }
    }

    /// The number of bytes that [`encode`](Self::encode) appends, for a frame header before them.
    pub fn encoded_len(&self, stream: Stream, payload_len: usize, cap_reached: bool) -> usize {
        self.prefix.len()
            + stream.as_str().len()
            + self.before_bytes.len()
            + base64::encoded_len(payload_len)
            + self.after_bytes[usize::from(cap_reached)].len()
    }

    /// Appends the notification for `payload` on `stream`.
    pub fn encode(&self, out: &mut Vec<u8>, stream: Stream, payload: &[u8], cap_reached: bool) {
        out.reserve(self.encoded_len(stream, payload.len(), cap_reached));
        out.extend_from_slice(&self.prefix);
        out.extend_from_slice(stream.as_str().as_bytes());
        out.extend_from_slice(self.before_bytes);
        base64::encode_into(out, payload);
        out.extend_from_slice(self.after_bytes[usize::from(cap_reached)]);
    }
}
