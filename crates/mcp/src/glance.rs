//! What can be told of a message that is too long to be kept.

use serde_json::Value;

/// A key of a message that is longer than this is none of ours.
const KEY_BYTES: usize = 16;
/// An id that is longer than this is nobody's.
const ID_BYTES: usize = 256;

/// Looks at a message as it passes, byte by byte, and finds out whether it is
/// an answer, and to what. Whoever waits for one that was thrown away can be told
/// then.
#[derive(Debug, Default)]
pub(crate) struct Glance {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Behind the colon of a member of the message itself.
    in_value: bool,
    key: Vec<u8>,
    id: Vec<u8>,
    has_method: bool,
}

impl Glance {
    pub(crate) fn at(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.step(*byte);
        }
    }

    /// What it answers, if it is an answer.
    pub(crate) fn answers(&self) -> Option<Value> {
        let id = serde_json::from_slice(&self.id).ok()?;
        let is_id = matches!(id, Value::Number(_) | Value::String(_));
        (is_id && !self.has_method).then_some(id)
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            let ends = byte == b'"' && !self.escaped;
            self.escaped = byte == b'\\' && !self.escaped;
            self.in_string = !ends;
            if self.depth == 1 && (self.in_value || !ends) {
                self.note(byte);
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && self.in_value {
                    self.note(byte);
                } else {
                    self.key.clear();
                }
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 => {
                self.in_value = true;
                self.has_method |= self.key == b"method";
            }
            b',' if self.depth == 1 => {
                self.in_value = false;
                self.key.clear();
            }
            _ if self.depth == 1 && self.in_value => self.note(byte),
            _ => {}
        }
    }

    /// A byte of a key, or of a plain value, of the message itself.
    fn note(&mut self, byte: u8) {
        if !self.in_value {
            if self.key.len() < KEY_BYTES {
                self.key.push(byte);
            }
        } else if self.key == b"id" && self.id.len() < ID_BYTES {
            self.id.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn answers(text: &str) -> Option<Value> {
        let mut glance = Glance::default();
        glance.at(text.as_bytes());
        glance.answers()
    }

    #[test]
    fn an_answer_is_known_wherever_its_id_stands() {
        assert_eq!(
            answers(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#),
            Some(json!(7))
        );
        assert_eq!(
            answers(r#"{"result":{"id":3,"x":["id",{"id":4}]}, "id" : "a\"b,}" }"#),
            Some(json!("a\"b,}"))
        );
        assert_eq!(
            answers(r#"{"error":{"message":"\\"},"jsonrpc":"2.0","id":-1}"#),
            Some(json!(-1))
        );
    }

    #[test]
    fn what_is_no_answer_is_none() {
        for text in [
            "",
            "garbage, \"id\":3",
            r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
            r#"{"method":"note","params":{"id":7}}"#,
            r#"{"id":null,"error":{}}"#,
            r#"{"id":{"a":1},"result":{}}"#,
            r#"{"result":"\"id\":3"}"#,
            r#"["id",3]"#,
        ] {
            assert_eq!(answers(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_known(id in any::<i64>(), text in ".*", before in any::<bool>()) {
            let inner = json!({"id": text, text.as_str(): [text]});
            let message = if before {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{inner}}}"#)
            } else {
                format!(r#"{{"result":{inner},"jsonrpc":"2.0","id":{id}}}"#)
            };
            prop_assert_eq!(answers(&message), Some(json!(id)));
        }

        #[test]
        fn nothing_upsets_it(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut glance = Glance::default();
            glance.at(&bytes);
            let _ = glance.answers();
        }
    }
}
