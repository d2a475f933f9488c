//! Encoders of the messages that carry most of the bytes: output, files and bodies.
//!
//! They are written by hand, with the base64 straight into the outgoing buffer. This is about ten
//! times faster than a `String` and serde, which would scan each character for escapes. Property tests
//! compare all of them with serde.

use std::collections::TryReserveError;

use crate::method::{
    COMMAND_OUTPUT_DELTA, HTTP_BODY_DELTA, Method, PROCESS_OUTPUT, PROCESS_OUTPUT_DELTA,
};
use crate::{RequestId, Stream, base64};

/// The end of a message after its bytes.
const END: &[u8] = br#""}}"#;

/// Appends a message with base64 between `before` and `after`.
fn append(out: &mut Vec<u8>, before: &[&[u8]], payload: &[u8], after: &[u8]) {
    out.reserve(length(before, payload.len(), after));
    for part in before {
        out.extend_from_slice(part);
    }
    base64::encode_into(out, payload);
    out.extend_from_slice(after);
}

/// The number of bytes that [`append`] appends.
fn length(before: &[&[u8]], payload_len: usize, after: &[u8]) -> usize {
    let before: usize = before.iter().map(|part| part.len()).sum();
    before + base64::encoded_len(payload_len) + after.len()
}

/// The beginning of a notification, which is constant per process or request: everything up to and
/// including the id and the name of the next member.
fn prefix(method: &str, key: &str, id: &str, next: &str) -> Box<[u8]> {
    let id = serde_json::Value::from(id);
    let prefix = format!(r#"{{"method":"{method}","params":{{"{key}":{id},"{next}":"#);
    prefix.into_bytes().into()
}

/// Encodes the `process/output` notifications of one process, like
/// [`ProcessOutput`](crate::ProcessOutput).
#[derive(Clone, Debug)]
pub struct OutputEncoder {
    /// The message up to its sequence number.
    prefix: Box<[u8]>,
}

impl OutputEncoder {
    /// Prepares the encoder for a process.
    pub fn new(process_id: &str) -> Self {
        Self {
            prefix: prefix(PROCESS_OUTPUT, "processId", process_id, "seq"),
        }
    }

    /// The number of bytes that [`encode`](Self::encode) appends, for a frame header before them.
    pub fn encoded_len(&self, seq: u64, stream: Stream, payload_len: usize) -> usize {
        let mut number = itoa::Buffer::new();
        length(&self.before(number.format(seq), stream), payload_len, END)
    }

    /// Appends the notification that `payload` was written to `stream` as event `seq`.
    pub fn encode(&self, out: &mut Vec<u8>, seq: u64, stream: Stream, payload: &[u8]) {
        let mut number = itoa::Buffer::new();
        append(out, &self.before(number.format(seq), stream), payload, END);
    }

    fn before<'a>(&'a self, seq: &'a str, stream: Stream) -> [&'a [u8]; 5] {
        [
            &self.prefix,
            seq.as_bytes(),
            br#","stream":""#,
            stream.as_str().as_bytes(),
            br#"","chunk":""#,
        ]
    }
}

/// Encodes the `outputDelta` notifications of one process.
#[derive(Clone, Debug)]
pub struct OutputDeltaEncoder {
    method: &'static str,
    /// The part before the name of the stream.
    prefix: Box<[u8]>,
    /// The part between that name and the bytes.
    before_bytes: &'static [u8],
    /// The part after the bytes, before and after the cap is reached.
    after_bytes: [&'static [u8]; 2],
}

const DELTA: &[u8] = br#"","deltaBase64":""#;
const WITH_CAP: [&[u8]; 2] = [br#"","capReached":false}}"#, br#"","capReached":true}}"#];

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
        Self::new(
            COMMAND_OUTPUT_DELTA,
            "processId",
            id,
            br#"","chunk":""#,
            [END; 2],
        )
    }

    /// The method of the notifications.
    pub fn method(&self) -> &'static str {
        self.method
    }

    fn new(
        method: &'static str,
        key: &str,
        id: &str,
        before_bytes: &'static [u8],
        after_bytes: [&'static [u8]; 2],
    ) -> Self {
        Self {
            method,
            prefix: prefix(method, key, id, "stream"),
            before_bytes,
            after_bytes,
        }
    }

    /// The number of bytes that [`encode`](Self::encode) appends, for a frame header before them.
    pub fn encoded_len(&self, stream: Stream, payload_len: usize, cap_reached: bool) -> usize {
        let after = self.after_bytes[usize::from(cap_reached)];
        length(&self.before(stream), payload_len, after)
    }

    /// Appends the notification for `payload` on `stream`.
    pub fn encode(&self, out: &mut Vec<u8>, stream: Stream, payload: &[u8], cap_reached: bool) {
        let after = self.after_bytes[usize::from(cap_reached)];
        append(out, &self.before(stream), payload, after);
    }

    fn before(&self, stream: Stream) -> [&[u8]; 4] {
        let stream = stream.as_str().as_bytes();
        [&self.prefix, b"\"", stream, self.before_bytes]
    }
}

/// Encodes the `http/request/bodyDelta` notifications of one request, all but the last, like
/// [`HttpBodyDelta`](crate::HttpBodyDelta).
#[derive(Clone, Debug)]
pub struct BodyEncoder {
    /// The part before the number.
    prefix: Box<[u8]>,
}

const NOT_DONE: &[u8] = br#"","done":false,"error":null}}"#;

impl BodyEncoder {
    /// Prepares the encoder for a request.
    pub fn new(request_id: &str) -> Self {
        Self {
            prefix: prefix(HTTP_BODY_DELTA, "requestId", request_id, "seq"),
        }
    }

    /// The number of bytes that [`encode`](Self::encode) appends, for a frame header before them.
    pub fn encoded_len(&self, seq: u64, payload_len: usize) -> usize {
        let mut number = itoa::Buffer::new();
        length(&self.before(number.format(seq)), payload_len, NOT_DONE)
    }

    /// Appends the notification for chunk `seq` of the body.
    pub fn encode(&self, out: &mut Vec<u8>, seq: u64, payload: &[u8]) {
        let mut number = itoa::Buffer::new();
        append(out, &self.before(number.format(seq)), payload, NOT_DONE);
    }

    fn before<'a>(&'a self, seq: &'a str) -> [&'a [u8]; 3] {
        [&self.prefix, seq.as_bytes(), br#","deltaBase64":""#]
    }
}

/// Appends a request for `fs/writeBlock`.
pub fn encode_write_block(out: &mut Vec<u8>, id: i64, handle_id: &str, offset: u64, chunk: &[u8]) {
    let method = Method::FsWriteBlock.name();
    let handle_id = serde_json::Value::from(handle_id);
    let head = format!(
        r#"{{"id":{id},"method":"{method}","params":{{"handleId":{handle_id},"offset":{offset},"chunk":""#
    );
    append(out, &[head.as_bytes()], chunk, END);
}

/// Appends the response to an `fs/readBlock`.
pub fn encode_read_block(out: &mut Vec<u8>, id: &RequestId, chunk: &[u8], eof: bool) {
    let tail = format!(r#"","eof":{eof}}}}}"#);
    append(out, &[&response_head(id, "chunk")], chunk, tail.as_bytes());
}

/// The beginning of a response whose first member is a string.
fn response_head(id: &RequestId, member: &str) -> Vec<u8> {
    let mut head = br#"{"id":"#.to_vec();
    serde_json::to_writer(&mut head, id).expect("an id can always be written to memory");
    head.extend_from_slice(format!(r#","result":{{"{member}":""#).as_bytes());
    head
}

/// An incomplete response to `fs/readFile`, encoded while the file is read. It may be hundreds of
/// megabytes long, so there is no copy of the file or its base64.
#[derive(Debug, Default)]
pub struct ReadFileAnswer {
    message: Vec<u8>,
}

impl ReadFileAnswer {
    /// The length of every block but the last must be a multiple of this, because base64 has padding
    /// only at the end.
    pub const BLOCK_UNIT: usize = 3;

    /// Begins the response to `id`, with space for a file of `expected` bytes.
    pub fn new(id: &RequestId, expected: usize) -> Result<Self, TryReserveError> {
        let head = response_head(id, "dataBase64");
        let mut message = Vec::new();
        let others = head.len() + END.len();
        message.try_reserve_exact(base64::encoded_len(expected).saturating_add(others))?;
        message.extend_from_slice(&head);
        Ok(Self { message })
    }

    /// Appends the next bytes of the file.
    pub fn push(&mut self, block: &[u8]) {
        base64::encode_into(&mut self.message, block);
    }

    /// Takes what was encoded so far.
    pub fn take_block(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.message)
    }

    /// Returns the message, without the blocks that were taken.
    pub fn finish(mut self) -> Vec<u8> {
        self.message.extend_from_slice(END);
        self.message
    }
}
