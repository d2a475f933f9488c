//! Frames put together into messages.

use bytes::{Buf, BytesMut};

use super::{Header, Opcode};
use crate::{InboundError, Received, Role, room::append};

/// What the next bytes belong to.
#[derive(Debug)]
enum Stage {
    /// A frame header comes next.
    Header,
    /// The payload of this frame comes next.
    Payload(Header),
    /// So many bytes of a message that is too long are still to be thrown
    /// away; then either another of its frames follows or, if this was the
    /// last one, the next message.
    Skip { left: u64, last: bool },
}

/// Assembles messages out of received bytes.
#[derive(Debug)]
pub(crate) struct Messages {
    role: Role,
    limit: usize,
    stage: Stage,
    /// The earlier fragments of the message under way.
    fragments: Option<BytesMut>,
    /// The message under way is thrown away with its remaining frames, and this
    /// is why.
    skipping: Option<Received>,
}

impl Messages {
    pub(crate) fn new(role: Role, limit: usize) -> Self {
        Messages {
            role,
            limit,
            stage: Stage::Header,
            fragments: None,
            skipping: None,
        }
    }

    /// Takes what it can from the front of `received`; `None` means that more
    /// bytes are needed.
    pub(crate) fn next(
        &mut self,
        received: &mut BytesMut,
    ) -> Result<Option<Received>, InboundError> {
        loop {
            match self.stage {
                Stage::Header => {
                    let Some(header) = Header::parse(received).map_err(InboundError::WebSocket)?
                    else {
                        return Ok(None);
                    };
                    received.advance(header.len);
                    self.accept(header)?;
                }
                Stage::Payload(header) => {
                    let len = header.payload as usize;
                    if received.len() < len {
                        return Ok(None);
                    }
                    let mut payload = received.split_to(len);
                    header.mask.unwrap_or_default().apply(&mut payload);
                    self.stage = Stage::Header;
                    if let Some(message) = self.finish(header, payload) {
                        return Ok(Some(message));
                    }
                }
                Stage::Skip { left, last } => {
                    let now = left.min(received.len() as u64);
                    received.advance(now as usize);
                    if now < left {
                        self.stage = Stage::Skip {
                            left: left - now,
                            last,
                        };
                        return Ok(None);
                    }
                    self.stage = Stage::Header;
                    if last && let Some(reason) = self.skipping.take() {
                        return Ok(Some(reason));
                    }
                }
            }
        }
    }

    /// How many more bytes the frame under way needs at most, so that a large
    /// one is read in large pieces.
    pub(crate) fn wants(&self, received: usize) -> usize {
        match self.stage {
            Stage::Payload(header) => (header.payload as usize).saturating_sub(received),
            _ => 0,
        }
    }

    /// Decides what becomes of a frame, before its payload is there.
    fn accept(&mut self, header: Header) -> Result<(), InboundError> {
        let masked = header.mask.is_some();
        if masked != (self.role == Role::Server) {
            return Err(InboundError::WebSocket(
                "clients must mask their frames, and servers must not",
            ));
        }
        if header.opcode.is_control() {
            self.stage = Stage::Payload(header);
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
            self.skipping = Some(Received::TooLong);
            self.skip(header);
        } else {
            self.stage = Stage::Payload(header);
        }
        Ok(())
    }

    /// There is no memory for the frame under way. Control frames are too small
    /// for that to happen.
    pub(crate) fn give_up(&mut self) {
        if let Stage::Payload(header) = self.stage {
            self.skipping = Some(Received::NoMemory);
            self.skip(header);
        }
    }

    fn skip(&mut self, header: Header) {
        self.fragments = None;
        self.stage = Stage::Skip {
            left: header.payload,
            last: header.last,
        };
    }

    /// A whole frame is there: a message, a part of one, or control.
    fn finish(&mut self, header: Header, payload: BytesMut) -> Option<Received> {
        match header.opcode {
            Opcode::Ping => Some(Received::Ping(payload.freeze())),
            Opcode::Pong => Some(Received::Pong),
            Opcode::Close => {
                let code = payload.first_chunk().map(|code| u16::from_be_bytes(*code));
                Some(Received::Close(code))
            }
            Opcode::Text | Opcode::Binary | Opcode::Continuation => {
                let message = match self.fragments.take() {
                    None => payload,
                    Some(mut earlier) => {
                        if append(&mut earlier, &payload).is_err() {
                            if header.last {
                                return Some(Received::NoMemory);
                            }
                            self.skipping = Some(Received::NoMemory);
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
