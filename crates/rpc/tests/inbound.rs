//! The reader of a connection: its memory, and messages that do not arrive.

use std::time::Duration;

use outpost_protocol::RequestId;
use outpost_rpc::{Framing, Inbound, InboundError, MemoryBudget, Received, Role, SkipReason};
use tokio::{
    io::{AsyncWriteExt as _, DuplexStream},
    time::Instant,
};

const MIB: usize = 1024 * 1024;
const TIMEOUT: Duration = Duration::from_secs(30);
const FRAMING: Framing = Framing::WebSocket(Role::Server);

fn connection() -> (DuplexStream, Inbound) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let inbound = Inbound::new(Box::new(theirs), FRAMING, 64 * MIB, None);
    (ours, inbound)
}

/// The header of a masked frame whose mask changes nothing.
fn header(bytes: usize, first: u8) -> Vec<u8> {
    let mut header = vec![first, 0xFF];
    header.extend_from_slice(&(bytes as u64).to_be_bytes());
    header.extend_from_slice(&[0; 4]);
    header
}

/// The header of a text message in one frame.
fn text_header(bytes: usize) -> Vec<u8> {
    header(bytes, 0x81)
}

/// A request as one frame with this payload.
fn request(id: i64, bytes: usize) -> Vec<u8> {
    let mut sent = text_header(bytes);
    let end = sent.len() + bytes;
    sent.extend(format!(r#"{{"id":{id},"method":"m","params":{{"pad":""#).as_bytes());
    sent.resize(end - 3, b'x');
    sent.extend(br#""}}"#);
    sent
}

fn overloaded(id: Option<i64>) -> Received {
    Received::Skipped(SkipReason::Overloaded, id.map(RequestId::Integer))
}

/// Sends bytes in pieces, with a pause after each.
async fn send_slowly(peer: &mut DuplexStream, bytes: usize, piece: usize, pause: Duration) {
    for _ in 0..bytes.div_ceil(piece) {
        peer.write_all(&vec![b'x'; piece]).await.unwrap();
        // sleep: virtual time, on a slow link
        tokio::time::sleep(pause).await;
    }
}

#[tokio::test(start_paused = true)]
async fn message_without_progress_fails() {
    for (sent, trickled) in [
        (text_header(MIB), 1000),
        (vec![0x81], 0),
        (header(9, 0x01), 9),
    ] {
        let (mut peer, inbound) = connection();
        let budget = MemoryBudget::new(20 * MIB, TIMEOUT);
        let mut inbound = inbound
            .with_memory(&budget.share())
            .with_message_timeout(TIMEOUT);
        let start = Instant::now();
        peer.write_all(&sent).await.unwrap();
        let trickle = async {
            send_slowly(&mut peer, trickled, 1, Duration::from_secs(3)).await;
            std::future::pending::<()>().await;
        };
        let failed = tokio::select! {
            received = inbound.next() => received,
            () = trickle => unreachable!("it never ends"),
        };
        assert!(
            matches!(failed, Err(InboundError::Stalled(TIMEOUT))),
            "{failed:?}"
        );
        assert_eq!(start.elapsed(), TIMEOUT);
    }
}

#[tokio::test(start_paused = true)]
async fn slow_message_with_progress_arrives() {
    let (mut peer, inbound) = connection();
    let mut inbound = inbound.with_message_timeout(TIMEOUT);
    let start = Instant::now();
    peer.write_all(&text_header(MIB)).await.unwrap();
    let send = send_slowly(&mut peer, MIB, 16 * 1024, Duration::from_secs(6));
    let (received, ()) = tokio::join!(inbound.next(), send);
    assert!(matches!(received, Ok(Some(Received::Message(message))) if message.len() == MIB));
    assert!(start.elapsed() > TIMEOUT * 10);
}

#[tokio::test(start_paused = true)]
async fn idle_connection_has_no_message_timeout() {
    let (mut peer, inbound) = connection();
    let mut inbound = inbound.with_message_timeout(TIMEOUT);
    for _ in 0..2 {
        let send = async {
            // sleep: virtual time between two messages
            tokio::time::sleep(TIMEOUT * 3).await;
            peer.write_all(&text_header(2)).await.unwrap();
            peer.write_all(b"{}").await.unwrap();
        };
        let (received, ()) = tokio::join!(inbound.next(), send);
        assert!(matches!(received, Ok(Some(Received::Message(_)))));
    }
}

#[tokio::test(start_paused = true)]
async fn message_without_memory_is_skipped_after_a_wait() {
    let budget = MemoryBudget::new(20 * MIB, TIMEOUT);
    let held = budget.share().try_charge(10 * MIB).expect("bytes");
    let (mut peer, inbound) = connection();
    let mut inbound = inbound.with_memory(&budget.share());
    let mut sent = request(7, 5 * MIB);
    sent.extend(text_header(2));
    sent.extend(b"{}");
    let start = Instant::now();
    let receive = async {
        let skipped = inbound.next().await.unwrap();
        assert_eq!(skipped, Some(overloaded(Some(7))));
        assert_eq!(start.elapsed(), TIMEOUT);
        let next = inbound.next().await.unwrap();
        assert_eq!(next, Some(Received::Message("{}".into())));
        assert!(inbound.take_charge().is_none(), "it is small");
    };
    let (sent, ()) = tokio::join!(peer.write_all(&sent), receive);
    sent.unwrap();
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn message_waits_for_memory_and_holds_it() {
    let budget = MemoryBudget::new(20 * MIB, TIMEOUT);
    let held = budget.share().try_charge(10 * MIB).expect("bytes");
    let (mut peer, inbound) = connection();
    let mut inbound = inbound
        .with_memory(&budget.share())
        .with_message_timeout(TIMEOUT / 10);
    let mut sent = text_header(5 * MIB);
    sent.resize(sent.len() + 5 * MIB, b'x');
    let release = async {
        // sleep: virtual time, while the message waits
        tokio::time::sleep(TIMEOUT / 2).await;
        drop(held);
    };
    let (sent, received, ()) = tokio::join!(peer.write_all(&sent), inbound.next(), release);
    sent.unwrap();
    assert!(matches!(received, Ok(Some(Received::Message(message))) if message.len() == 5 * MIB));
    assert!(budget.share().try_charge(12 * MIB).is_none());
    let charge = inbound.take_charge().expect("it is large");
    assert!(charge.bytes() >= 5 * MIB);
    drop(charge);
    assert!(budget.share().try_charge(12 * MIB).is_some());
}

#[tokio::test(start_paused = true)]
async fn fragments_are_counted_together() {
    let budget = MemoryBudget::new(20 * MIB, TIMEOUT);
    let (mut peer, inbound) = connection();
    let mut inbound = inbound.with_memory(&budget.share());
    let mut sent = Vec::new();
    for number in 0..16 {
        let first = if number == 0 { 0x01 } else { 0x00 };
        sent.extend(header(MIB, first));
        sent.resize(sent.len() + MIB, b'x');
    }
    sent.extend(header(0, 0x80));
    let (sent, received) = tokio::join!(peer.write_all(&sent), inbound.next());
    sent.unwrap();
    assert_eq!(received.unwrap(), Some(overloaded(None)));
    assert!(
        budget.share().try_charge(12 * MIB).is_some(),
        "nothing is held"
    );
}

#[tokio::test(start_paused = true)]
async fn slow_peers_hold_only_the_memory_of_what_they_sent() {
    let budget = MemoryBudget::new(20 * MIB, TIMEOUT);
    let mut peers = Vec::new();
    for _ in 0..10 {
        let (mut peer, inbound) = connection();
        let mut inbound = inbound.with_memory(&budget.share());
        let mut sent = text_header(8 * MIB);
        sent.resize(sent.len() + 1000, b'x');
        peer.write_all(&sent).await.unwrap();
        let waiting = tokio::time::timeout(TIMEOUT / 10, inbound.next()).await;
        assert!(waiting.is_err(), "it is incomplete");
        peers.push((peer, inbound));
    }
    assert!(budget.share().try_charge(15 * MIB).is_some());
}

/// Each has half of the memory when it needs more.
#[tokio::test(start_paused = true)]
async fn one_of_two_messages_that_block_each_other_arrives() {
    let budget = MemoryBudget::new(20 * MIB, TIMEOUT);
    let receive = async |id| {
        let (mut peer, inbound) = connection();
        let mut inbound = inbound.with_memory(&budget.share());
        let sent = request(id, 7 * MIB);
        let (sent, received) = tokio::join!(peer.write_all(&sent), inbound.next());
        sent.unwrap();
        received.unwrap().expect("a message")
    };
    let received = tokio::join!(receive(1), receive(2));
    let (received, skipped) = match received {
        (Received::Message(first), second) => (first, second),
        (first, Received::Message(second)) => (second, first),
        other => panic!("{other:?}"),
    };
    assert_eq!(received.len(), 7 * MIB);
    assert!(matches!(
        skipped,
        Received::Skipped(SkipReason::Overloaded, Some(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn skipped_message_is_reported_with_its_id() {
    let (mut peer, theirs) = tokio::io::duplex(64 * 1024);
    let mut inbound = Inbound::new(Box::new(theirs), FRAMING, 1000, None);
    let whole = request(7, 200_001);
    let mut masked = whole.clone();
    masked[10..14].copy_from_slice(&[1, 2, 3, 4]);
    for (byte, mask) in masked[14..].iter_mut().zip([1, 2, 3, 4].iter().cycle()) {
        *byte ^= mask;
    }
    let mut fragments = header(900, 0x01);
    fragments.extend(&whole[14..914]);
    fragments.extend(header(199_101, 0x80));
    fragments.extend(&whole[914..]);
    for sent in [whole, masked, fragments] {
        let (sent, received) = tokio::join!(peer.write_all(&sent), inbound.next());
        sent.unwrap();
        let expected = Received::Skipped(SkipReason::TooLong, Some(RequestId::Integer(7)));
        assert_eq!(received.unwrap(), Some(expected));
    }
}
