//! The encoding of bytes in arguments and results.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::serve::ToolError;

/// Text, or base64 for anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Encoding {
    #[default]
    Utf8,
    Base64,
}

impl Encoding {
    /// Decodes the argument `name`. White space in base64 is ignored.
    pub(super) fn decode(self, name: &'static str, text: String) -> Result<Vec<u8>, ToolError> {
        match self {
            Encoding::Utf8 => Ok(text.into_bytes()),
            Encoding::Base64 => {
                let compact: String = text.split_whitespace().collect();
                let bytes = STANDARD.decode(compact);
                bytes.map_err(|_| ToolError::NotBase64 { name })
            }
        }
    }

    /// Encodes bytes: as text if they are UTF-8, and as base64 otherwise.
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
    fn bytes_that_are_not_utf8_are_encoded_as_base64() {
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
