//! HTTP without a WebSocket: one request, one answer.

use std::path::Path;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

use crate::patience::soon;

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number in its first line.
    pub status: u16,
    /// All of its head.
    pub head: String,
    /// What was behind the head when the other side closed; for an upgrade, nothing is waited
    /// for.
    pub body: String,
}

impl Answer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// The headers of a request for a WebSocket.
pub const UPGRADE: &[&str] = &[
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/// Asks over TCP.
pub async fn get(address: &str, path: &str, headers: &[&str]) -> Answer {
    let socket = TcpStream::connect(address).await;
    ask(
        socket.unwrap_or_else(|error| panic!("{address}: {error}")),
        path,
        headers,
    )
    .await
}

/// Asks over a unix socket.
pub async fn get_over_unix(socket: &Path, path: &str, headers: &[&str]) -> Answer {
    let stream = UnixStream::connect(socket).await;
    let stream = stream.unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
    ask(stream, path, headers).await
}

async fn ask(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    path: &str,
    headers: &[&str],
) -> Answer {
    let mut request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n");
    for header in headers {
        request.push_str(&format!("{header}\r\n"));
    }
    request.push_str("\r\n");
    // Who refuses at the door may have closed it already.
    let _ = soon("a request to be sent", socket.write_all(request.as_bytes())).await;
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let answer = parse(head, body);
            if answer.status == 101 || is_whole(&answer) {
                return answer;
            }
        }
        let read = soon("an answer", socket.read_buf(&mut bytes)).await;
        assert!(read.is_ok_and(|read| read > 0), "only {text:?} came");
    }
}

fn parse(head: &str, body: &str) -> Answer {
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Answer {
        status: status.unwrap_or_else(|| panic!("no status in {head:?}")),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

fn is_whole(answer: &Answer) -> bool {
    let length = answer
        .header("content-length")
        .and_then(|length| length.parse().ok());
    length.is_none_or(|length: usize| answer.body.len() >= length)
}
