//! What of a server's output is protocol, for those who only pass it on.

use bytes::Bytes;
use serde::de::IgnoredAny;

use crate::lines::{Line, Lines};

/// Parts messages from everything else that a server prints.
#[derive(Debug)]
pub struct Sieve {
    lines: Lines,
}

/// A line, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passage {
    /// A message, or what is said in place of one that was too long.
    Message(Bytes),
    /// Something that must not come between messages.
    Aside(Bytes),
    /// Something that was too long and isn't there any more.
    Lost {
        /// Its length.
        bytes: u64,
    },
}

impl Sieve {
    /// For messages of at most so many bytes.
    #[must_use]
    pub fn new(message_bytes: usize) -> Self {
        Sieve {
            lines: Lines::new(message_bytes),
        }
    }

    /// Takes what came next.
    pub fn push(&mut self, piece: Bytes) {
        self.lines.push(piece);
    }

    /// No more will come.
    pub fn finish(&mut self) {
        self.lines.finish();
    }

    /// The next line.
    pub fn pop(&mut self) -> Option<Passage> {
        Some(match self.lines.pop()? {
            Line::Whole(line) if is_message(&line) => Passage::Message(line),
            Line::Whole(line) => Passage::Aside(line),
            Line::TooLong { bytes, answers } => match answers {
                Some(id) => Passage::Message(too_long(bytes, &id)),
                None => Passage::Lost { bytes },
            },
        })
    }
}

/// A JSON object, or in an older revision a list of them. What is ignored while it
/// is parsed isn't looked at closely, so that it is text is seen to here: some
/// hosts end with a line that isn't.
fn is_message(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let first = line.strip_prefix(b"[").unwrap_or(line);
    first.trim_ascii_start().starts_with(b"{")
        && std::str::from_utf8(line)
            .is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

fn too_long(bytes: u64, id: &serde_json::Value) -> Bytes {
    let message = format!("the answer of {bytes} bytes is too long");
    let error = serde_json::json!({
        "jsonrpc": "2.0",
        "id": id,
        "error": {"code": -32603, "message": message},
    });
    error.to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_get_through() {
        let mut sieve = Sieve::new(60);
        sieve.push(Bytes::from_static(
            b"starting...\n{\"jsonrpc\":\"2.0\"}\r\n{broken\n[{\"id\":1}]\n [ {\"id\":2} ]\n[1]\n",
        ));
        sieve.push(format!("{{\"id\":\"a\",\"result\":\"{}\"}}\n", "x".repeat(90)).into());
        sieve.push(format!("{}\n{{}}", "y".repeat(90)).into());
        sieve.finish();
        let passages: Vec<_> = std::iter::from_fn(|| sieve.pop()).collect();
        let aside = |text: &'static str| Passage::Aside(text.into());
        let message = |text: &'static str| Passage::Message(text.into());
        let told = r#"{"error":{"code":-32603,"message":"the answer of 112 bytes is too long"},"id":"a","jsonrpc":"2.0"}"#;
        assert_eq!(
            passages,
            [
                aside("starting..."),
                message("{\"jsonrpc\":\"2.0\"}"),
                aside("{broken"),
                message("[{\"id\":1}]"),
                message(" [ {\"id\":2} ]"),
                aside("[1]"),
                message(told),
                Passage::Lost { bytes: 90 },
                message("{}"),
            ]
        );
    }

    #[test]
    fn what_is_no_text_is_no_message() {
        let mut sieve = Sieve::new(60);
        let lines: [&[u8]; 3] = [
            b"{\"a\":\"\xff\"}",
            b"[{\"\xc3\":1}]",
            "{\"a\":\"ä\"}".as_bytes(),
        ];
        sieve.push([lines.join(&b'\n'), b"\n".to_vec()].concat().into());
        let passages: Vec<_> = std::iter::from_fn(|| sieve.pop()).collect();
        assert_eq!(
            passages,
            [
                Passage::Aside(Bytes::from_static(lines[0])),
                Passage::Aside(Bytes::from_static(lines[1])),
                Passage::Message(Bytes::from_static(lines[2])),
            ]
        );
    }
}
