//! The accept key of the opening handshake (RFC 6455, section 4.2.2).

use sha1::{Digest, Sha1};

/// The constant that RFC 6455 appends to every key.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Returns the `Sec-WebSocket-Accept` value for a `Sec-WebSocket-Key`.
#[must_use]
pub fn accept_key(key: &[u8]) -> String {
    let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
    base64_simd::STANDARD.encode_to_string(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_key_matches_the_rfc_example() {
        assert_eq!(
            accept_key(b"dGhlIHNhbXBsZSBub25jZQ=="),
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
    }
}
