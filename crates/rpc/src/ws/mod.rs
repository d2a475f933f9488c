//! WebSocket framing (RFC 6455).
//!
//! Not from a library, for two reasons: a message over the size limit must be skipped and
//! answered with an error while the connection goes on, and output is encoded straight
//! into the outgoing frame.

mod header;
mod messages;
mod upgrade;

pub(crate) use header::{Header, Mask, MaskSource, Opcode, encode_header, encode_part_header};
pub(crate) use messages::Messages;
pub use upgrade::{UpgradeError, UpgradeRequest, accept_key, open};
