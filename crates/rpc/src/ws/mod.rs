//! The WebSocket protocol (RFC 6455), as much of it as a message needs.
//!
//! Written here rather than taken from a library for two reasons: a message
//! over the size limit must be skipped and answered while the connection goes
//! on, and output is encoded straight into the outgoing frame.

mod handshake;
mod header;
mod mask;
mod messages;
mod opening;

pub use handshake::accept_key;
pub(crate) use header::{Header, Opcode, encode_header, encode_part_header};
pub(crate) use mask::{Mask, MaskSource};
pub(crate) use messages::Messages;
pub use opening::{Opening, OpeningError, open};
