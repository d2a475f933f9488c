//! A client that sends random bytes.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::counters::{Counters, add};
use super::rng::Rng;

const UPGRADE: &[u8] =
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Connects repeatedly and sends random bytes.
pub(super) async fn send(address: String, mut rng: Rng, counters: Arc<Counters>) {
    loop {
        if let Ok(mut socket) = TcpStream::connect(&address).await {
            let length = rng.between(1, 5000);
            let bytes: Vec<u8> = (0..length).map(|_| rng.between(0, 255) as u8).collect();
            if rng.between(0, 2) > 0 {
                let _ = socket.write_all(UPGRADE).await;
            }
            let _ = socket.write_all(&bytes).await;
            add(&counters.malformed, 1);
            tokio::time::sleep(Duration::from_millis(rng.between(0, 200))).await;
        }
    }
}
