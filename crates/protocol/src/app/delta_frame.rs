//! The output of a process that belongs to a connection, encoded by hand for the same reason as
//! [`OutputFrame`](crate::OutputFrame).

use crate::{COMMAND_OUTPUT_DELTA, PROCESS_OUTPUT_DELTA, StreamName, base64};

/// Encodes the `outputDelta` notifications of one process, in the words of its face.
#[derive(Clone, Debug)]
pub struct DeltaFrame {
    /// The message up to the name of the stream.
    prefix: Box<[u8]>,
    /// From the end of that name to the bytes.
    before_bytes: &'static [u8],
    /// What follows the bytes, for a stream that goes on and for one that doesn't.
    after_bytes: [&'static [u8]; 2],
}

const DELTA: &[u8] = br#"","deltaBase64":""#;
const CHUNK: &[u8] = br#"","chunk":""#;
const WITH_CAP: [&[u8]; 2] = [br#"","capReached":false}}"#, br#"","capReached":true}}"#];
const WITHOUT_CAP: [&[u8]; 2] = [br#""}}"#; 2];

impl DeltaFrame {
    /// As [`SpawnOutput`](crate::SpawnOutput).
    pub fn spawn(handle: &str) -> Self {
        Self::new(
            PROCESS_OUTPUT_DELTA,
            "processHandle",
            handle,
            DELTA,
            WITH_CAP,
        )
    }

    /// As [`CommandOutput`](crate::CommandOutput).
    pub fn command(id: &str) -> Self {
        Self::new(COMMAND_OUTPUT_DELTA, "processId", id, DELTA, WITH_CAP)
    }

    /// As [`V0Output`](crate::V0Output), which doesn't tell of caps.
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

    /// How many bytes [`encode`](Self::encode) will append, for a frame header that goes before them.
    pub fn encoded_len(&self, stream: StreamName, payload_len: usize, cap_reached: bool) -> usize {
        self.prefix.len()
            + stream.as_str().len()
            + self.before_bytes.len()
            + base64::encoded_len(payload_len)
            + self.after_bytes[usize::from(cap_reached)].len()
    }

    /// Appends the notification that `payload` was written to `stream`.
    pub fn encode(&self, out: &mut Vec<u8>, stream: StreamName, payload: &[u8], cap_reached: bool) {
        out.reserve(self.encoded_len(stream, payload.len(), cap_reached));
        out.extend_from_slice(&self.prefix);
        out.extend_from_slice(stream.as_str().as_bytes());
        out.extend_from_slice(self.before_bytes);
        base64::encode_into(out, payload);
        out.extend_from_slice(self.after_bytes[usize::from(cap_reached)]);
    }
}
