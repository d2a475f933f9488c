//! The bytes of the next write: any number of frames, one behind the other.

use crate::{
    Framing, Role,
    ws::{Mask, Opcode, encode_header, encode_part_header},
};

/// A buffer of whole frames in the framing of a transport.
#[derive(Debug)]
pub struct Frames {
    framing: Framing,
    buffer: Vec<u8>,
    /// Where the payload of the frame under way starts, and its mask.
    open: Option<(usize, Mask)>,
    /// Draws the masks of a client; a server has none.
    masks: Option<crate::ws::MaskSource>,
}

impl Frames {
    /// An empty buffer.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Frames {
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

    /// Appends a part of a message that is too large to be in here as a whole.
    /// Between two parts of it there may be control frames, and nothing else.
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

    /// Starts a message of exactly `len` bytes, to be appended to what this
    /// returns; [`Frames::finish`] ends it. Writing straight into the frame
    /// saves a copy of every byte of output.
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

    /// Ends the message that [`Frames::begin`] started.
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

    /// Appends a WebSocket control frame; lines have none.
    pub(crate) fn control(&mut self, opcode: Opcode, payload: &[u8]) {
        if let Framing::WebSocket(_) = self.framing {
            self.begin_frame(opcode, payload.len())
                .extend_from_slice(payload);
            self.finish();
        }
    }

    /// How many bytes are waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether nothing is waiting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// How much memory is held.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// The frames so far.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Starts over, keeping the memory for the next write.
    pub fn clear(&mut self) {
        self.buffer.clear();
    }

    /// Gives the memory back: a connection that is quiet costs nothing.
    pub fn release(&mut self) {
        self.buffer = Vec::new();
    }
}
