//! Assembles frames into messages.

use bytes::{Buf as _, BytesMut};

use super::{Header, Opcode};
use crate::{InboundError, Received, Role, SkipReason, receive_buffer::append, skipping::Skipping};

/// State of the frame parser.
#[derive(Debug)]
enum ReadState {
    /// Expects a frame header.
    Header,
    /// Expects the payload of this frame.
    Payload(Header),
    /// Discards the remaining `left` bytes of this frame.
    Skip { header: Header, left: u64 },
}

/// Assembles messages from received bytes.
#[derive(Debug)]
pub(crate) struct Messages {
    role: Role,
    limit: usize,
    state: ReadState,
    /// Earlier fragments of the current message.
    fragments: Option<BytesMut>,
    /// The current message, if it is being discarded.
    skipping: Option<Skipping>,
}

impl Messages {
    pub(crate) fn new(role: Role, limit: usize) -> Self {
        Messages {
            role,
            limit,
            state: ReadState::Header,
            fragments: None,
            skipping: None,
        }
    }

    /// Takes the next message or control frame from the front of `received`. Returns `None`
    /// if more bytes are needed.
    pub(crate) fn next(
        &mut self,
        received: &mut BytesMut,
    ) -> Result<Option<Received>, InboundError> {
        loop {
            match self.state {
                ReadState::Header => {
                    let Some(header) = Header::parse(received).map_err(InboundError::WebSocket)?
                    else {
                        return Ok(None);
                    };
                    received.advance(header.len);
                    self.accept(header)?;
                }
                ReadState::Payload(header) => {
                    let len = header.payload as usize;
                    if received.len() < len {
                        return Ok(None);
                    }
                    let mut payload = received.split_to(len);
                    header.mask.unwrap_or_default().apply(&mut payload);
                    self.state = ReadState::Header;
                    if let Some(message) = self.finish(header, payload) {
                        return Ok(Some(message));
                    }
                }
                ReadState::Skip { header, left } => {
                    let now = left.min(received.len() as u64);
                    let discarded = &mut received[..now as usize];
                    let mask = header.mask.unwrap_or_default();
                    mask.at_offset(header.payload - left).apply(discarded);
                    if let Some(skipping) = &mut self.skipping {
                        skipping.discard(discarded);
                    }
                    received.advance(now as usize);
                    if now < left {
                        let left = left - now;
                        self.state = ReadState::Skip { header, left };
                        return Ok(None);
                    }
                    self.state = ReadState::Header;
                    if header.last
                        && let Some(skipping) = self.skipping.take()
                    {
                        return Ok(Some(skipping.finish()));
                    }
                }
            }
        }
    }

    /// Returns how many bytes of the current frame are missing. Sizes the next read.
    pub(crate) fn wants(&self, received: usize) -> usize {
        match self.state {
            ReadState::Payload(header) => (header.payload as usize).saturating_sub(received),
            _ => 0,
        }
    }

    /// Checks a frame header and decides whether to read or skip its payload.
    fn accept(&mut self, header: Header) -> Result<(), InboundError> {
        let masked = header.mask.is_some();
        if masked != (self.role == Role::Server) {
            return Err(InboundError::WebSocket(
                "clients must mask their frames, and servers must not",
            ));
        }
        if header.opcode.is_control() {
            self.state = ReadState::Payload(header);
            return Ok(());
        }
        let continues = header.opcode == Opcode::Continuation;
        if continues != (self.fragments.is_some() || self.skipping.is_some()) {
            return Err(InboundError::WebSocket("fragments are out of order"));
        }
        let so_far = self.fragments.as_ref().map_or(0, BytesMut::len) as u64;
        if self.skipping.is_some() {
            self.skip(header);
        } else if header.payload > self.limit as u64 - so_far {
            self.skipping = Some(Skipping::new(SkipReason::TooLong));
            self.skip(header);
        } else {
            self.state = ReadState::Payload(header);
        }
        Ok(())
    }

    /// Returns the memory of the current message if `frame` bytes of the current frame are in it.
    pub(crate) fn message_bytes(&self, frame: usize) -> usize {
        let earlier = self.fragments.as_ref().map_or(0, BytesMut::len);
        match self.state {
            ReadState::Payload(header) if !header.opcode.is_control() => {
                earlier + frame.min(header.payload as usize)
            }
            _ => earlier,
        }
    }

    /// Returns whether a frame or a fragmented message has begun.
    pub(crate) fn is_incomplete(&self) -> bool {
        !matches!(self.state, ReadState::Header)
            || self.fragments.is_some()
            || self.skipping.is_some()
    }

    pub(crate) fn raise_limit(&mut self, limit: usize) {
        self.limit = self.limit.max(limit);
    }

    /// Discards the current message. Never needed for control frames, which are small.
    pub(crate) fn skip_because(&mut self, reason: SkipReason) {
        if let ReadState::Payload(header) = self.state {
            self.skipping = Some(Skipping::new(reason));
            self.skip(header);
        }
    }

    fn skip(&mut self, header: Header) {
        if let (Some(skipping), Some(fragments)) = (&mut self.skipping, self.fragments.take()) {
            skipping.discard(&fragments);
        }
        let left = header.payload;
        self.state = ReadState::Skip { header, left };
    }

    /// Processes a complete frame: a message, a fragment, or a control frame.
    fn finish(&mut self, header: Header, payload: BytesMut) -> Option<Received> {
        match header.opcode {
            Opcode::Ping => Some(Received::Ping(payload.freeze())),
            Opcode::Pong => Some(Received::Pong),
            Opcode::Close => {
                let code = payload.first_chunk().map(|code| u16::from_be_bytes(*code));
                let reason = payload.freeze();
                Some(Received::Close(code, reason.slice(reason.len().min(2)..)))
            }
            Opcode::Text | Opcode::Binary | Opcode::Continuation => {
                let message = match self.fragments.take() {
                    None => payload,
                    Some(mut earlier) => {
                        if append(&mut earlier, &payload).is_err() {
                            let mut skipping = Skipping::new(SkipReason::NoMemory);
                            skipping.discard(&earlier);
                            skipping.discard(&payload);
                            if header.last {
                                return Some(skipping.finish());
                            }
                            self.skipping = Some(skipping);
                            return None;
                        }
                        earlier
                    }
                };
                if header.last {
                    return Some(Received::Message(message.freeze()));
                }
                self.fragments = Some(message);
                None
            }
        }
    }
}
