//! Builds WebSocket frames, for tests of the framing.

use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

pub use tokio_tungstenite::tungstenite::Message;

/// A text message.
pub fn text(text: &str) -> Message {
    Message::text(text)
}

/// A binary message.
pub fn binary(bytes: &[u8]) -> Message {
    Message::binary(bytes.to_vec())
}

/// A ping.
pub fn ping(payload: &[u8]) -> Message {
    Message::Ping(payload.to_vec().into())
}

/// A close without a reason.
pub fn close() -> Message {
    Message::Close(None)
}

/// A text message fragmented into `pieces`.
pub fn fragments<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Message> {
    let pieces: Vec<_> = pieces.into_iter().collect();
    let last = pieces.len().saturating_sub(1);
    let frames = pieces.into_iter().enumerate().map(|(nth, piece)| {
        let opcode = if nth == 0 { Data::Text } else { Data::Continue };
        Message::Frame(Frame::message(
            piece.to_vec(),
            OpCode::Data(opcode),
            nth == last,
        ))
    });
    frames.collect()
}

/// A final continuation frame without a first frame.
pub fn continuation(text: &str) -> Message {
    let payload = text.as_bytes().to_vec();
    Message::Frame(Frame::message(payload, OpCode::Data(Data::Continue), true))
}
