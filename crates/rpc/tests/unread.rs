//! Connections that do not read and hold memory for which others wait.

use std::time::Duration;

use outpost_rpc::{
    Framing, MemoryBudget, MemoryShare, Outbox, OutgoingMessage, Role,
    outbox::{WriterOptions, deliver},
};
use tokio::io::{AsyncReadExt as _, DuplexStream};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const MIB: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(5);

/// A connection with an unwritten message, and the token that closes it.
async fn connection(share: &MemoryShare, message: usize) -> (DuplexStream, CancellationToken) {
    let (peer, ours) = tokio::io::duplex(64 * 1024);
    let outbox = Outbox::with_memory(CancellationToken::new(), share.clone());
    let framing = Framing::WebSocket(Role::Server);
    let write = Box::new(ours);
    let close = CancellationToken::new();
    share.close_if_unread(close.clone());
    let (writing, closed) = (outbox.clone(), close.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = deliver(writing.clone(), write, framing, WriterOptions::default()) => {}
            () = closed.cancelled() => writing.end(),
        }
    });
    let reservation = outbox.reserve(message).await;
    let mut message = OutgoingMessage::new(vec![b'x'; message]);
    message.reservation = Some(reservation.expect("bytes are free"));
    outbox.send(message);
    (peer, close)
}

#[tokio::test(start_paused = true)]
async fn connection_that_holds_most_gives_way() {
    let budget = MemoryBudget::new(20 * MIB, TIMEOUT);
    let (_large, large) = connection(&budget.share(), 9 * MIB).await;
    let (_small, small) = connection(&budget.share(), MIB).await;
    let idle = budget.share();
    let held = idle.try_charge(MIB).expect("bytes are free");
    let idle_closed = CancellationToken::new();
    idle.close_if_unread(idle_closed.clone());

    let waiting = budget.share();
    let start = Instant::now();
    assert!(waiting.charge(12 * MIB).await.is_some());
    assert_eq!(start.elapsed(), TIMEOUT);
    assert!(large.is_cancelled());
    assert!(!small.is_cancelled(), "its bytes are not needed");
    assert!(!idle_closed.is_cancelled(), "it is not being written to");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn slow_reader_does_not_give_way() {
    let budget = MemoryBudget::new(20 * MIB, TIMEOUT);
    let (mut peer, close) = connection(&budget.share(), 12 * MIB).await;
    let reading = tokio::spawn(async move {
        let mut buffer = vec![0; 64 * 1024];
        while peer.read_exact(&mut buffer).await.is_ok() {
            // sleep: virtual time, a slow link
            sleep(TIMEOUT / 3).await;
        }
    });
    let waiting = budget.share();
    let start = Instant::now();
    assert!(waiting.charge(12 * MIB).await.is_none());
    assert_eq!(start.elapsed(), TIMEOUT);
    assert!(!close.is_cancelled());
    reading.abort();
}
