//! WebSocket framing (RFC 6455).
//!
//! Not from a library, for two reasons: a message over the size limit must be skipped and
//! answered with an error while the connection goes on, and output is encoded straight
//! into the outgoing frame.

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
