//! Sends one plain HTTP request.

use std::path::Path;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

use crate::deadline::expect_soon;

/// An HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Status line and headers.
    pub head: String,
    /// The body; not awaited after an upgrade.
    pub body: String,
}

impl Response {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// The headers of a WebSocket upgrade.
pub const UPGRADE: &[&str] = &[
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/// Sends a GET request over TCP.
pub async fn get(address: &str, path: &str, headers: &[&str]) -> Response {
    get_as(address, "localhost", path, headers).await
}

/// Sends a GET request over TCP, with this `Host` header.
pub async fn get_as(address: &str, host: &str, path: &str, headers: &[&str]) -> Response {
    let socket = TcpStream::connect(address).await;
    let socket = socket.unwrap_or_else(|error| panic!("{address}: {error}"));
    send(socket, host, path, headers).await
}

/// Sends a GET request over a unix socket.
pub async fn get_over_unix(socket: &Path, path: &str, headers: &[&str]) -> Response {
    let stream = UnixStream::connect(socket).await;
    let stream = stream.unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
    send(stream, "localhost", path, headers).await
}

async fn send(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    host: &str,
    path: &str,
    headers: &[&str],
) -> Response {
    let first = format!("GET {path} HTTP/1.1");
    let host = format!("Host: {host}");
    let lines = [&[&*first, &*host], headers, &["", ""]].concat();
    let request = lines.join("\r\n");
    // A rejecting server may have closed the connection already.
    let _ = expect_soon("a request to be sent", socket.write_all(request.as_bytes())).await;
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some(response) = parse_complete(&text) {
            return response;
        }
        let read = expect_soon("a response", socket.read_buf(&mut bytes)).await;
        assert!(
            read.is_ok_and(|read| read > 0),
            "incomplete response {text:?}"
        );
    }
}

/// Parses a response. Returns None if it is incomplete.
fn parse_complete(text: &str) -> Option<Response> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1);
    let status = status.and_then(|status| status.parse().ok());
    let response = Response {
        status: status.unwrap_or_else(|| panic!("no status in {head:?}")),
        head: head.to_owned(),
        body: body.to_owned(),
    };
    let length = response.header("content-length");
    let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    (response.status == 101 || body.len() >= length).then_some(response)
}
