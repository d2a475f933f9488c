//! The client side of the opening handshake (RFC 6455, section 4.1), and the accept key of
//! both sides.

use std::io;

use bytes::{Bytes, BytesMut};
use sha1::{Digest, Sha1};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::MaskSource;

/// Limit for the head of the server's response.
const MAX_HEAD_BYTES: usize = 16 * 1024;
const HEAD_END: &[u8] = b"\r\n\r\n";
/// The constant that RFC 6455 appends to every key.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Limit for the part of a rejection's body that is reported.
const MAX_REASON_BYTES: usize = 512;

/// Parameters of the upgrade request. Without `Debug`, since the token is a secret.
#[derive(Clone, Copy)]
pub struct UpgradeRequest<'a> {
    /// Value of the `Host` header.
    pub host: &'a str,
    /// The path and query of the URL.
    pub path: &'a str,
    /// Sent as `Authorization: Bearer`. The caller makes sure that it is visible ASCII.
    pub bearer_token: Option<&'a str>,
}

/// Error of the opening handshake.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    /// The transport failed, or ended within the response.
    #[error("failed to request the websocket upgrade: {0}")]
    Io(io::Error),
    /// The server responded with a status other than 101.
    #[error("the server answered the websocket upgrade with HTTP status {status}{}", reason_suffix(.reason))]
    Rejected {
        /// The status.
        status: u16,
        /// The beginning of the body on one line, with control characters escaped.
        reason: String,
    },
    /// The response does not follow the protocol.
    #[error("invalid response to the websocket upgrade: {0}")]
    Malformed(&'static str),
}

fn reason_suffix(reason: &str) -> String {
    if reason.is_empty() {
        String::new()
    } else {
        format!(": {reason}")
    }
}

// Not `#[from]`, which would make it a source: the message contains it already.
impl From<io::Error> for UpgradeError {
    fn from(error: io::Error) -> Self {
        UpgradeError::Io(error)
    }
}

/// The first byte of a TLS alert, see RFC 8446, section 5.1.
const TLS_ALERT: u8 = 21;

/// Performs the opening handshake. Returns the bytes that were received after the
/// response head; they belong to the first frames.
pub async fn open<S>(io: &mut S, request: UpgradeRequest<'_>) -> Result<Bytes, UpgradeError>
where
    S: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    let key = random_key();
    let authorization = match request.bearer_token {
        Some(token) => format!("Authorization: Bearer {token}\r\n"),
        None => String::new(),
    };
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n{authorization}\r\n",
        path = request.path,
        host = request.host,
    );
    io.write_all(head.as_bytes()).await?;
    io.flush().await?;
    let mut received = BytesMut::new();
    let end = loop {
        if io.read_buf(&mut received).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        // The server takes the request for a broken TLS handshake.
        if received[0] == TLS_ALERT {
            let speaks_tls = "the server expects TLS; use wss:// in place of ws://";
            return Err(UpgradeError::Malformed(speaks_tls));
        }
        let found = received
            .windows(HEAD_END.len())
            .position(|window| window == HEAD_END);
        match found {
            Some(at) => break at,
            None if received.len() > MAX_HEAD_BYTES => {
                return Err(UpgradeError::Malformed("the header is too long"));
            }
            None => {}
        }
    };
    let head = received.split_to(end + HEAD_END.len());
    match check(&head[..end], &accept_key(key.as_bytes())) {
        Err(UpgradeError::Rejected { status, .. }) => Err(UpgradeError::Rejected {
            status,
            reason: read_reason(io, &head, received).await,
        }),
        checked => checked.map(|()| received.freeze()),
    }
}

/// Reads the beginning of a rejection's body. Without a `Content-Length`, only what came with the
/// head, because the end of the body is unknown.
async fn read_reason<S>(io: &mut S, head: &[u8], mut body: BytesMut) -> String
where
    S: AsyncRead + Unpin + ?Sized,
{
    let head = String::from_utf8_lossy(head);
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    let length = headers
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok());
    let wanted = length.unwrap_or(body.len()).min(MAX_REASON_BYTES);
    while body.len() < wanted && io.read_buf(&mut body).await.is_ok_and(|count| count > 0) {}
    body.truncate(wanted);
    let text = String::from_utf8_lossy(&body);
    let escaped = text.trim().chars().map(|c| {
        if c.is_ascii() && !c.is_ascii_control() {
            c.to_string()
        } else {
            c.escape_default().to_string()
        }
    });
    escaped.collect()
}

/// Checks that the response accepts the upgrade with the expected key.
fn check(head: &[u8], accept: &str) -> Result<(), UpgradeError> {
    let head = std::str::from_utf8(head).map_err(|_| UpgradeError::Malformed("not text"))?;
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.strip_prefix("HTTP/1.1 "))
        .and_then(|rest| rest.get(..3))
        .and_then(|code| code.parse().ok())
        .ok_or(UpgradeError::Malformed("not HTTP/1.1"))?;
    if status != 101 {
        return Err(UpgradeError::Rejected {
            status,
            reason: String::new(),
        });
    }
    let agrees = lines
        .filter_map(|line| line.split_once(':'))
        .any(|(name, value)| {
            name.eq_ignore_ascii_case("sec-websocket-accept") && value.trim() == accept
        });
    if agrees {
        Ok(())
    } else {
        Err(UpgradeError::Malformed("wrong Sec-WebSocket-Accept"))
    }
}

/// Returns 16 random bytes in base64.
fn random_key() -> String {
    let mut masks = MaskSource::new();
    let bytes: [[u8; 4]; 4] = std::array::from_fn(|_| masks.draw().0);
    base64_simd::STANDARD.encode_to_string(bytes.as_flattened())
}

/// Returns the `Sec-WebSocket-Accept` value for a `Sec-WebSocket-Key` (section 4.2.2).
#[must_use]
pub fn accept_key(key: &[u8]) -> String {
    let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
    base64_simd::STANDARD.encode_to_string(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

    fn outcome(head: &str) -> Result<(), String> {
        check(head.as_bytes(), ACCEPT).map_err(|error| error.to_string())
    }

    #[test]
    fn only_status_101_with_the_right_key_is_accepted() {
        let yes = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n";
        assert_eq!(
            outcome(&format!("{yes}sec-websocket-ACCEPT:  {ACCEPT}")),
            Ok(())
        );
        assert!(
            outcome(yes)
                .unwrap_err()
                .contains("wrong Sec-WebSocket-Accept")
        );
        assert!(
            outcome("HTTP/1.1 503 Busy\r\n")
                .unwrap_err()
                .ends_with("503")
        );
        assert!(outcome("SSH-2.0-x").unwrap_err().contains("not HTTP/1.1"));
        assert!(outcome("HTTP/1.1 1").unwrap_err().contains("not HTTP/1.1"));
    }

    #[tokio::test]
    async fn bytes_after_the_response_are_returned() {
        let (mut ours, mut theirs) = tokio::io::duplex(4096);
        let upgrade = UpgradeRequest {
            host: "h",
            path: "/p",
            bearer_token: Some("secret"),
        };
        let server = async {
            let mut request = vec![0; 4096];
            let count = theirs.read(&mut request).await.unwrap();
            let request = String::from_utf8(request[..count].to_vec()).unwrap();
            assert!(request.starts_with("GET /p HTTP/1.1\r\nHost: h\r\n"));
            assert!(request.contains("\r\nAuthorization: Bearer secret\r\n"));
            let key = request
                .lines()
                .find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "))
                .unwrap();
            let accept = accept_key(key.as_bytes());
            let response = format!(
                "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {accept}\r\n\r\nframe"
            );
            theirs.write_all(response.as_bytes()).await.unwrap();
        };
        let (early, ()) = tokio::join!(open(&mut ours, upgrade), server);
        assert_eq!(early.unwrap(), "frame");
    }

    #[tokio::test]
    async fn rejection_names_the_servers_reason() {
        for (response, message) in [
            (
                "401 No\r\nContent-Length: 9\r\n\r\nbad \u{1b}[31mand more",
                "401: bad \\u{1b}[31m",
            ),
            ("403 No\r\n\r\n", "403"),
            ("401 No\r\ncontent-length: 99\r\n\r\ncut", "401: cut"),
        ] {
            let (mut ours, mut theirs) = tokio::io::duplex(4096);
            let upgrade = UpgradeRequest {
                host: "h",
                path: "/",
                bearer_token: None,
            };
            let server = async {
                let mut request = vec![0; 4096];
                let _ = theirs.read(&mut request).await.unwrap();
                let response = format!("HTTP/1.1 {response}");
                theirs.write_all(response.as_bytes()).await.unwrap();
                drop(theirs);
            };
            let (opened, ()) = tokio::join!(open(&mut ours, upgrade), server);
            let shown = opened.unwrap_err().to_string();
            assert!(shown.ends_with(message), "{shown:?}");
        }
    }

    #[test]
    fn accept_key_matches_the_rfc_example() {
        assert_eq!(
            accept_key(b"dGhlIHNhbXBsZSBub25jZQ=="),
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
    }
}
