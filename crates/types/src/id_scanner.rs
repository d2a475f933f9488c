//! Extracts the id of a message that is discarded.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Longer keys are irrelevant: the longest relevant key is `method`.
const KEY_BYTES: usize = 16;
/// Longer ids are not ours.
const ID_BYTES: usize = 256;

/// Scans the bytes of a discarded message for its id, so that the waiting call can fail at
/// once instead of timing out.
#[derive(Debug, Default)]
pub struct IdScanner {
    bytes: u64,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// After the colon of a top-level member.
    in_value: bool,
    key: Vec<u8>,
    id: Vec<u8>,
    has_method: bool,
}

impl IdScanner {
    /// Scans the next bytes of the message.
    pub fn scan(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        for byte in bytes {
            self.step(*byte);
        }
    }

    /// Returns the number of scanned bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the request id if the message is a response.
    #[must_use]
    pub fn response_id(&self) -> Option<Value> {
        let id = serde_json::from_slice(&self.id).ok()?;
        let is_id = matches!(id, Value::Number(_) | Value::String(_));
        (is_id && !self.has_method).then_some(id)
    }

    /// Returns the id if the message is a request.
    #[must_use]
    pub fn request_id<T: DeserializeOwned>(&self) -> Option<T> {
        let id = serde_json::from_slice(&self.id).ok()?;
        self.has_method.then_some(id)
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            let ends = byte == b'"' && !self.escaped;
            self.escaped = byte == b'\\' && !self.escaped;
            self.in_string = !ends;
            if self.depth == 1 && (self.in_value || !ends) {
                self.record(byte);
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && self.in_value {
                    self.record(byte);
                } else {
                    self.key.clear();
                }
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 => {
                self.in_value = true;
                self.has_method |= self.key == b"method";
                if self.key == b"id" {
                    self.id.clear();
                }
            }
            b',' if self.depth == 1 => {
                self.in_value = false;
                self.key.clear();
            }
            _ if self.depth == 1 && self.in_value => self.record(byte),
            _ => {}
        }
    }

    /// Records a byte of a top-level key or scalar value.
    fn record(&mut self, byte: u8) {
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

    fn response_id(text: &str) -> Option<Value> {
        let mut scanner = IdScanner::default();
        scanner.scan(text.as_bytes());
        scanner.response_id()
    }

    #[test]
    fn finds_id_at_any_position() {
        assert_eq!(
            response_id(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#),
            Some(json!(7))
        );
        assert_eq!(
            response_id(r#"{"result":{"id":3,"x":["id",{"id":4}]}, "id" : "a\"b,}" }"#),
            Some(json!("a\"b,}"))
        );
        assert_eq!(
            response_id(r#"{"error":{"message":"\\"},"jsonrpc":"2.0","id":-1}"#),
            Some(json!(-1))
        );
    }

    #[test]
    fn ignores_messages_that_are_not_responses() {
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
            assert_eq!(response_id(text), None, "{text}");
        }
    }

    #[test]
    fn finds_id_of_a_request() {
        let request_id = |text: &str| {
            let mut scanner = IdScanner::default();
            scanner.scan(text.as_bytes());
            scanner.request_id::<Value>()
        };
        let begun = r#"{"id":7,"method":"fs/writeFile","params":{"id":8,"dataBase64":"QUFB"#;
        assert_eq!(request_id(begun), Some(json!(7)));
        let reversed = r#"{"params":{"id":8},"method":"m","id":"a"}"#;
        assert_eq!(request_id(reversed), Some(json!("a")));
        assert_eq!(
            request_id(r#"{"id":1,"id":2,"method":"m"}"#),
            Some(json!(2))
        );
        for text in [r#"{"id":7,"result":{}}"#, r#"{"method":"m"}"#, "nonsense"] {
            assert_eq!(request_id(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn finds_id_of_any_response(id in any::<i64>(), text in ".*", before in any::<bool>()) {
            let inner = json!({"id": text, text.as_str(): [text]});
            let message = if before {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{inner}}}"#)
            } else {
                format!(r#"{{"result":{inner},"jsonrpc":"2.0","id":{id}}}"#)
            };
            prop_assert_eq!(response_id(&message), Some(json!(id)));
        }

        #[test]
        fn accepts_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut scanner = IdScanner::default();
            scanner.scan(&bytes);
            let _ = scanner.response_id();
        }
    }
}
