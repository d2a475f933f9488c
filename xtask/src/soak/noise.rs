//! Somebody who talks nonsense.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::dice::Dice;
use super::figures::{Figures, add};

const UPGRADE: &[u8] =
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Connects again and again, and says something that makes no sense.
pub(super) async fn make(address: String, mut dice: Dice, figures: Arc<Figures>) {
    loop {
        if let Ok(mut socket) = TcpStream::connect(&address).await {
            let length = dice.between(1, 5000);
            let nonsense: Vec<u8> = (0..length).map(|_| dice.between(0, 255) as u8).collect();
            if dice.between(0, 2) > 0 {
                let _ = socket.write_all(UPGRADE).await;
            }
            let _ = socket.write_all(&nonsense).await;
            add(&figures.nonsense, 1);
            tokio::time::sleep(Duration::from_millis(dice.between(0, 200))).await;
        }
    }
}
