//! A WebSocket whose bytes the test writes and reads itself.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::deadline::expect_soon;
use crate::http_client::UPGRADE;

/// A connection for incomplete messages and unread answers.
pub struct RawWebSocket {
    socket: TcpStream,
}

impl RawWebSocket {
    /// Connects to the address of a server.
    pub async fn connect(address: &str) -> Self {
        let socket = TcpStream::connect(address).await;
        let mut socket = socket.unwrap_or_else(|error| panic!("{address}: {error}"));
        // Header and payload are written separately.
        socket
            .set_nodelay(true)
            .unwrap_or_else(|error| panic!("{address}: {error}"));
        let lines = [&["GET / HTTP/1.1", "Host: localhost"], UPGRADE, &["", ""]].concat();
        let request = lines.join("\r\n");
        let upgrade = async {
            socket.write_all(request.as_bytes()).await?;
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await?);
            }
            io::Result::Ok(head)
        };
        let head = expect_soon("an upgrade", upgrade).await;
        let head = head.unwrap_or_else(|error| panic!("{address}: {error}"));
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", head.escape_ascii());
        RawWebSocket { socket }
    }

    /// Connects, and sends the handshake with these params of `initialize`. Nothing is read.
    pub async fn initialized(address: &str, params: &serde_json::Value) -> Self {
        let mut socket = Self::connect(address).await;
        let initialize = serde_json::json!({"id": 0, "method": "initialize", "params": params});
        socket.send(&initialize.to_string()).await;
        socket.send(r#"{"method":"initialized"}"#).await;
        socket
    }

    /// Sends a message.
    pub async fn send(&mut self, text: &str) {
        self.begin(text.len() as u64).await;
        self.write(text.as_bytes())
            .await
            .unwrap_or_else(|error| panic!("cannot send: {error}"));
    }

    /// Sends the header of a message of `bytes` bytes. Its mask changes nothing.
    pub async fn begin(&mut self, bytes: u64) {
        let mut header = vec![0x81, 0xFF];
        header.extend_from_slice(&bytes.to_be_bytes());
        header.extend_from_slice(&[0; 4]);
        self.write(&header)
            .await
            .unwrap_or_else(|error| panic!("cannot send: {error}"));
    }

    /// Writes raw bytes.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes).await
    }

    /// Reads exactly `bytes` raw bytes.
    pub async fn read(&mut self, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        let done = expect_soon("raw bytes", self.socket.read_exact(&mut read)).await;
        done.unwrap_or_else(|error| panic!("cannot read: {error}"));
        read
    }
}
