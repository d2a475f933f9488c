//! Random faults: of a link, and of a client that sends random bytes.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use outpost_testkit::http_client::UPGRADE;
use outpost_testkit::{Direction, FaultyLink};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::counters::SharedCounters;

/// Cuts, stalls, half-closes and throttles a link until aborted.
pub(super) async fn of_link(link: Arc<FaultyLink>, mut rng: Rng, counters: SharedCounters) {
    let wait = |millis| tokio::time::sleep(Duration::from_millis(millis));
    loop {
        wait(rng.u64(20..=500)).await;
        let direction = if rng.bool() {
            Direction::ToServer
        } else {
            Direction::ToClient
        };
        let fault = rng.u8(0..10);
        match fault {
            0..=5 => {}
            6 | 7 => link.stall(direction),
            8 => link.throttle(direction, 500_000),
            _ => link.half_close(direction),
        }
        if fault > 5 {
            counters.lock().other_faults += 1;
            wait(rng.u64(10..=400)).await;
            link.open();
        }
        // A half-closed connection stays half-closed.
        if fault <= 5 || rng.bool() {
            link.cut().await;
            counters.lock().cuts += 1;
        }
    }
}

/// Connects repeatedly and sends random bytes.
pub(super) async fn of_input(address: String, mut rng: Rng, counters: SharedCounters) {
    let upgrade = UPGRADE.join("\r\n");
    let upgrade = format!("GET / HTTP/1.1\r\nHost: x\r\n{upgrade}\r\n\r\n");
    loop {
        if let Ok(mut socket) = TcpStream::connect(&address).await {
            let length = rng.usize(1..=5000);
            let bytes: Vec<u8> = (0..length).map(|_| rng.u8(..)).collect();
            if rng.u8(0..3) > 0 {
                let _ = socket.write_all(upgrade.as_bytes()).await;
            }
            let _ = socket.write_all(&bytes).await;
            counters.lock().malformed += 1;
            tokio::time::sleep(Duration::from_millis(rng.u64(0..=200))).await;
        }
    }
}
