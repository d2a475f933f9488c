//! The framing of messages on a byte stream, and the outgoing buffer that encodes them as frames.

use crate::ws::{Mask, Opcode, encode_header, encode_part_header};

/// Side of a WebSocket. Only clients mask their frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Accepted the connection.
    Server,
    /// Opened the connection.
    Client,
}

/// The framing of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One message per WebSocket message, over TCP or a unix socket.
    WebSocket(Role),
    /// One message per line, over standard input and output.
    Lines,
}

impl Framing {
    /// Returns the prefix of the error message for malformed input on this transport.
    #[must_use]
    pub fn malformed_prefix(self) -> &'static str {
        match self {
            Framing::WebSocket(_) => {
                "failed to parse websocket JSON-RPC message from exec-server websocket"
            }
            Framing::Lines => "failed to parse JSON-RPC message from exec-server stdio",
        }
    }
}

/// The frames of the next write, in the framing of a transport.
#[derive(Debug)]
pub struct FrameBuffer {
    framing: Framing,
    buffer: Vec<u8>,
    /// Payload start and mask of the frame being written.
    open: Option<(usize, Mask)>,
    /// Source of masks; only clients mask their frames.
    masks: Option<crate::ws::MaskSource>,
}

impl FrameBuffer {
    /// Creates an empty buffer.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        FrameBuffer {
            framing,
            buffer: Vec::new(),
            open: None,
            masks: (framing == Framing::WebSocket(Role::Client)).then(crate::ws::MaskSource::new),
        }
    }

    /// Appends a message.
    pub fn message(&mut self, payload: &[u8]) {
        self.begin(payload.len()).extend_from_slice(payload);
        self.finish();
    }

    /// Appends one fragment of a message that is too large to be buffered whole.
    /// Only control frames may be appended between two fragments.
    pub(crate) fn part(&mut self, payload: &[u8], first: bool, last: bool) {
        if let Framing::WebSocket(_) = self.framing {
            let opcode = if first {
                Opcode::Text
            } else {
                Opcode::Continuation
            };
            let mask = self.masks.as_mut().map(crate::ws::MaskSource::draw);
            let len = payload.len() as u64;
            encode_part_header(&mut self.buffer, opcode, last, len, mask);
            let start = self.buffer.len();
            self.buffer.extend_from_slice(payload);
            mask.unwrap_or_default().apply(&mut self.buffer[start..]);
            return;
        }
        self.buffer.extend_from_slice(payload);
        if last {
            self.buffer.push(b'\n');
        }
    }

    /// Starts a message of exactly `len` bytes. The caller appends the payload to the
    /// returned buffer and then calls [`FrameBuffer::finish`]. Encoding straight into
    /// the frame saves one copy of all process output.
    pub fn begin(&mut self, len: usize) -> &mut Vec<u8> {
        self.begin_frame(Opcode::Text, len)
    }

    fn begin_frame(&mut self, opcode: Opcode, len: usize) -> &mut Vec<u8> {
        self.buffer.reserve(len + 16);
        if let Framing::WebSocket(_) = self.framing {
            let mask = self.masks.as_mut().map(crate::ws::MaskSource::draw);
            encode_header(&mut self.buffer, opcode, len as u64, mask);
            self.open = Some((self.buffer.len(), mask.unwrap_or_default()));
        }
        &mut self.buffer
    }

    /// Completes the message started by [`FrameBuffer::begin`].
    pub fn finish(&mut self) {
        match self.framing {
            Framing::WebSocket(_) => {
                if let Some((start, mask)) = self.open.take() {
                    mask.apply(&mut self.buffer[start..]);
                }
            }
            Framing::Lines => self.buffer.push(b'\n'),
        }
    }

    /// Appends a WebSocket control frame. Does nothing for lines.
    pub(crate) fn control(&mut self, opcode: Opcode, payload: &[u8]) {
        if let Framing::WebSocket(_) = self.framing {
            self.begin_frame(opcode, payload.len())
                .extend_from_slice(payload);
            self.finish();
        }
    }

    /// Returns the number of buffered bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Returns whether the buffer is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Returns the allocated capacity in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Returns the encoded frames.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Clears the buffer and keeps its memory for the next write.
    pub fn clear(&mut self) {
        self.buffer.clear();
    }

    /// Clears the buffer and frees its memory.
    pub fn release(&mut self) {
        self.buffer = Vec::new();
    }
}
