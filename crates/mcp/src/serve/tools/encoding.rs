//! How bytes are written in an answer or an argument.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::serve::Mishap;

/// As text, or as base64 where they are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Encoding {
    Utf8,
    Base64,
}

impl Encoding {
    /// What was written like this.
    pub(super) fn decode(self, name: &'static str, text: String) -> Result<Vec<u8>, Mishap> {
        match self {
            Encoding::Utf8 => Ok(text.into_bytes()),
            Encoding::Base64 => {
                let lines: String = text.split_whitespace().collect();
                let bytes = STANDARD.decode(lines);
                bytes.map_err(|_| Mishap::NotBase64 { name })
            }
        }
    }

    /// Writes bytes as text if they are, and says how it was done.
    pub(super) fn encode(bytes: &[u8]) -> (String, Self) {
        match std::str::from_utf8(bytes) {
            Ok(text) => (text.to_owned(), Encoding::Utf8),
            Err(_) => (STANDARD.encode(bytes), Encoding::Base64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_written_as_base64() {
        assert_eq!(
            Encoding::encode("Grüße".as_bytes()),
            ("Grüße".to_owned(), Encoding::Utf8)
        );
        let (text, encoding) = Encoding::encode(&[0xff, 0]);
        assert_eq!((text.as_str(), encoding), ("/wA=", Encoding::Base64));
        assert_eq!(encoding.decode("content", text).unwrap(), [0xff, 0]);
        assert!(Encoding::Base64.decode("content", "%".to_owned()).is_err());
    }
}
