//! The writer of a connection.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use outpost_rpc::{
    Feed, FrameBuffer, Framing, Inbound, More, Outbox, OutgoingMessage, Received, Role,
    outbox::{MessageFragment, WriterOptions, deliver},
};
use tokio::io::AsyncReadExt as _;
use tokio_util::sync::CancellationToken;

/// A feed that always has more frames.
struct Flood;

impl Feed for Flood {
    fn fill(&self, frames: &mut FrameBuffer, budget: usize) -> More {
        frames.message(&vec![b'x'; budget]);
        More::Yes
    }

    fn written(&self) {}
}

fn flooded() -> (Outbox, Inbound) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let outbox = Outbox::new(CancellationToken::new());
    let options = WriterOptions {
        ping_interval: Duration::from_millis(20),
        ..WriterOptions::default()
    };
    let framing = Framing::WebSocket(Role::Server);
    tokio::spawn(deliver(outbox.clone(), Box::new(theirs), framing, options));
    outbox.ready(Arc::new(Flood));
    let inbound = Inbound::new(
        Box::new(ours),
        Framing::WebSocket(Role::Client),
        1 << 20,
        None,
    );
    (outbox, inbound)
}

async fn until(inbound: &mut Inbound, wanted: impl Fn(&Received) -> bool) {
    let found = async {
        loop {
            let received = inbound.next().await.expect("frames").expect("no end");
            if wanted(&received) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), found)
        .await
        .expect("it arrives between flood frames");
}

#[tokio::test]
async fn flood_does_not_delay_pings() {
    let (_outbox, mut inbound) = flooded();
    until(&mut inbound, |received| {
        matches!(received, Received::Ping(_))
    })
    .await;
    until(&mut inbound, |received| {
        matches!(received, Received::Ping(_))
    })
    .await;
}

#[tokio::test]
async fn messages_and_pongs_overtake_a_flood() {
    let (outbox, mut inbound) = flooded();
    outbox.send(OutgoingMessage::new(b"response".to_vec()));
    until(&mut inbound, |received| {
        *received == Received::Message(Bytes::from_static(b"response"))
    })
    .await;
    outbox.pong(Bytes::from_static(b"still here"));
    until(&mut inbound, |received| *received == Received::Pong).await;
}

#[tokio::test]
async fn unread_messages_hold_the_limit_until_read() {
    let (ours, theirs) = tokio::io::duplex(1024);
    let outbox = Outbox::new(CancellationToken::new());
    let framing = Framing::WebSocket(Role::Server);
    tokio::spawn(deliver(
        outbox.clone(),
        Box::new(theirs),
        framing,
        WriterOptions::default(),
    ));
    for _ in 0..6 {
        outbox.send(OutgoingMessage::new(vec![b'x'; 1 << 20]));
    }
    let waited = tokio::time::timeout(Duration::from_millis(100), outbox.wait_below_limit()).await;
    assert!(waited.is_err(), "too many bytes are unwritten");
    let mut inbound = Inbound::new(
        Box::new(ours),
        Framing::WebSocket(Role::Client),
        2 << 20,
        None,
    );
    let read = async {
        for _ in 0..6 {
            inbound.next().await.expect("frames").expect("no end");
        }
    };
    let (_, below_limit) = tokio::join!(
        read,
        tokio::time::timeout(Duration::from_secs(20), outbox.wait_below_limit())
    );
    assert!(below_limit.is_ok(), "all messages were read");
}

/// A feed that adds no frames.
#[derive(Default)]
struct EmptyFeed {
    written: tokio::sync::Notify,
}

impl Feed for EmptyFeed {
    fn fill(&self, _: &mut FrameBuffer, _: usize) -> More {
        More::No
    }

    fn written(&self) {
        self.written.notify_one();
    }
}

#[tokio::test]
async fn feed_without_frames_is_notified_as_written() {
    let (_ours, theirs) = tokio::io::duplex(1024);
    let outbox = Outbox::new(CancellationToken::new());
    let task = deliver(
        outbox.clone(),
        Box::new(theirs),
        Framing::Lines,
        WriterOptions::default(),
    );
    tokio::spawn(task);
    let feed = Arc::new(EmptyFeed::default());
    outbox.ready(Arc::clone(&feed) as Arc<dyn Feed>);
    tokio::time::timeout(Duration::from_secs(20), feed.written.notified())
        .await
        .expect("it is notified");
}

#[tokio::test(start_paused = true)]
async fn large_message_is_fragmented_with_pings_in_between() {
    for framing in [Framing::WebSocket(Role::Server), Framing::Lines] {
        let (mut ours, theirs) = tokio::io::duplex(64 * 1024);
        let outbox = Outbox::new(CancellationToken::new());
        let options = WriterOptions {
            ping_interval: Duration::from_millis(1),
            ..WriterOptions::default()
        };
        tokio::spawn(deliver(outbox.clone(), Box::new(theirs), framing, options));
        let large: Vec<u8> = (0..5_000_000_u32)
            .map(|at| b'a' + (at % 26) as u8)
            .collect();
        outbox.send(OutgoingMessage::new(b"before".to_vec()));
        outbox.send(OutgoingMessage::new(large.clone()));
        outbox.send(OutgoingMessage::new(b"after".to_vec()));
        outbox.close(outpost_rpc::CloseReason::Normal);
        // A ping is due after every read, so each pause between fragments has one.
        let mut written = Vec::new();
        while ours.read_buf(&mut written).await.expect("a read") > 0 {
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        let reading = match framing {
            Framing::Lines => Framing::Lines,
            Framing::WebSocket(_) => Framing::WebSocket(Role::Client),
        };
        let written = std::io::Cursor::new(written);
        let mut inbound = Inbound::new(Box::new(written), reading, 1 << 23, None);
        let (mut messages, mut pings_within) = (Vec::new(), 0);
        while messages.len() < 3 {
            match inbound.next().await.expect("frames").expect("no end") {
                Received::Message(message) => messages.push(message),
                Received::Ping(_) if messages.len() == 1 => pings_within += 1,
                _ => {}
            }
        }
        assert_eq!(messages[0], b"before"[..]);
        assert!(messages[1] == large, "the fragments make up the message");
        assert_eq!(messages[2], b"after"[..]);
        if let Framing::WebSocket(_) = framing {
            assert!(pings_within > 1, "no ping between the fragments");
        }
    }
}

#[tokio::test]
async fn close_is_sent_after_a_queued_large_message() {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let outbox = Outbox::new(CancellationToken::new());
    let framing = Framing::WebSocket(Role::Server);
    outbox.send(OutgoingMessage::new(vec![b'x'; 5 << 20]));
    outbox.close(outpost_rpc::CloseReason::Normal);
    tokio::spawn(deliver(
        outbox,
        Box::new(theirs),
        framing,
        WriterOptions::default(),
    ));
    let framing = Framing::WebSocket(Role::Client);
    let mut inbound = Inbound::new(Box::new(ours), framing, 1 << 23, None);
    let read = async {
        let first = inbound.next().await.expect("frames").expect("no end");
        assert!(matches!(first, Received::Message(message) if message.len() == 5 << 20));
        let second = inbound.next().await.expect("frames").expect("no end");
        assert!(matches!(second, Received::Close(Some(1000), _)));
    };
    tokio::time::timeout(Duration::from_secs(20), read)
        .await
        .expect("message and close frame arrive");
}

#[tokio::test]
async fn large_and_small_messages_arrive_whole_and_in_order() {
    let framings = [
        (
            Framing::WebSocket(Role::Server),
            Framing::WebSocket(Role::Client),
        ),
        (
            Framing::WebSocket(Role::Client),
            Framing::WebSocket(Role::Server),
        ),
        (Framing::Lines, Framing::Lines),
    ];
    for (here, there) in framings {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let outbox = Outbox::new(CancellationToken::new());
        let messages: Vec<Vec<u8>> = (0..6_u8)
            .map(|number| vec![b'a' + number; if number % 2 == 0 { 1 << 20 } else { 10 }])
            .collect();
        for message in &messages {
            outbox.send(OutgoingMessage::new(message.clone()));
        }
        outbox.close(outpost_rpc::CloseReason::Normal);
        let task = deliver(
            outbox.clone(),
            Box::new(theirs),
            here,
            WriterOptions::default(),
        );
        tokio::spawn(task);
        let mut inbound = Inbound::new(Box::new(ours), there, 2 << 20, None);
        for message in messages {
            let received = tokio::time::timeout(Duration::from_secs(20), inbound.next()).await;
            let received = received.expect("it arrives").expect("frames");
            assert_eq!(
                received,
                Some(Received::Message(message.into())),
                "{here:?}"
            );
        }
    }
}

/// A feed with one message.
struct SingleMessage(&'static [u8]);

impl Feed for SingleMessage {
    fn fill(&self, frames: &mut FrameBuffer, _: usize) -> More {
        frames.message(self.0);
        More::No
    }

    fn written(&self) {}
}

/// A feed that, while it is being filled, sends a message and announces another feed.
struct SendDuringFill {
    outbox: Outbox,
    message: Vec<u8>,
}

impl Feed for SendDuringFill {
    fn fill(&self, frames: &mut FrameBuffer, _: usize) -> More {
        frames.message(b"in between");
        self.outbox.send(OutgoingMessage::new(self.message.clone()));
        self.outbox.ready(Arc::new(SingleMessage(b"event")));
        More::No
    }

    fn written(&self) {}
}

#[tokio::test]
async fn feed_announced_after_a_message_is_written_after_it() {
    // One small message, and one that is written in fragments.
    for bytes in [6, 5 << 20] {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let outbox = Outbox::new(CancellationToken::new());
        let message = vec![b'a'; bytes];
        outbox.ready(Arc::new(SendDuringFill {
            outbox: outbox.clone(),
            message: message.clone(),
        }));
        let framing = Framing::WebSocket(Role::Server);
        tokio::spawn(deliver(
            outbox,
            Box::new(theirs),
            framing,
            WriterOptions::default(),
        ));
        let framing = Framing::WebSocket(Role::Client);
        let mut inbound = Inbound::new(Box::new(ours), framing, 1 << 23, None);
        for expected in [b"in between".to_vec(), message, b"event".to_vec()] {
            let received = tokio::time::timeout(Duration::from_secs(20), inbound.next()).await;
            let received = received.expect("it arrives").expect("frames");
            let Some(Received::Message(message)) = received else {
                panic!("no message: {received:?}");
            };
            assert!(message == expected, "{} bytes came first", message.len());
        }
    }
}

#[tokio::test]
async fn message_in_blocks_arrives_whole_and_in_order() {
    for there in [Framing::WebSocket(Role::Client), Framing::Lines] {
        let here = match there {
            Framing::Lines => Framing::Lines,
            Framing::WebSocket(_) => Framing::WebSocket(Role::Server),
        };
        let (ours, theirs) = tokio::io::duplex(4 * 1024);
        let outbox = Outbox::new(CancellationToken::new());
        let (blocks, rest) = tokio::sync::mpsc::channel(1);
        outbox.send(OutgoingMessage {
            rest: Some(rest),
            ..OutgoingMessage::new(b"first,".to_vec())
        });
        outbox.send(OutgoingMessage::new(b"next".to_vec()));
        let options = WriterOptions::default();
        tokio::spawn(deliver(outbox.clone(), Box::new(theirs), here, options));
        let send = async {
            for (bytes, last) in [(vec![b'x'; 300_000], false), (b",last".to_vec(), true)] {
                let block = MessageFragment { bytes, last };
                blocks.send(block).await.expect("the writer waits for it");
            }
        };
        let mut inbound = Inbound::new(Box::new(ours), there, 1 << 20, None);
        let receive = async {
            let whole = [&b"first,"[..], &[b'x'; 300_000], b",last"].concat();
            for message in [whole, b"next".to_vec()] {
                let received = inbound.next().await.expect("frames");
                assert!(
                    received == Some(Received::Message(message.into())),
                    "{there:?}"
                );
            }
        };
        tokio::join!(send, receive);
    }
}

#[tokio::test]
async fn message_without_its_last_block_ends_the_connection() {
    let (mut ours, theirs) = tokio::io::duplex(4 * 1024);
    let outbox = Outbox::new(CancellationToken::new());
    let (blocks, rest) = tokio::sync::mpsc::channel(1);
    outbox.send(OutgoingMessage {
        rest: Some(rest),
        ..OutgoingMessage::new(b"first".to_vec())
    });
    drop(blocks);
    let framing = Framing::WebSocket(Role::Server);
    deliver(
        outbox.clone(),
        Box::new(theirs),
        framing,
        WriterOptions::default(),
    )
    .await;
    assert!(outbox.is_closed());
    let mut received = Vec::new();
    ours.read_to_end(&mut received).await.expect("the end");
    assert!(
        received.ends_with(b"first"),
        "nothing pretends to be the end"
    );
}
