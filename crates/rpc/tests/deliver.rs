//! The writer of a connection, with a feed that never runs dry.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use outpost_rpc::{
    Answer, Feed, Frames, Framing, Inbound, More, Outbox, Received, Role,
    outbox::{Delivery, deliver},
};
use tokio_util::sync::CancellationToken;

/// Always has something to say.
struct Flood;

impl Feed for Flood {
    fn fill(&self, frames: &mut Frames, budget: usize) -> More {
        frames.message(&vec![b'x'; budget]);
        More::Yes
    }

    fn written(&self) {}
}

fn flooded() -> (Outbox, Inbound) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let outbox = Outbox::new(CancellationToken::new());
    let delivery = Delivery {
        ping_every: Duration::from_millis(20),
        ..Delivery::default()
    };
    let framing = Framing::WebSocket(Role::Server);
    tokio::spawn(deliver(outbox.clone(), Box::new(theirs), framing, delivery));
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
        .expect("it comes in the middle of a flood");
}

#[tokio::test]
async fn a_flood_does_not_keep_pings_back() {
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
async fn answers_and_pongs_overtake_a_flood() {
    let (outbox, mut inbound) = flooded();
    outbox.answer(Answer::new(b"answer".to_vec()));
    until(&mut inbound, |received| {
        *received == Received::Message(Bytes::from_static(b"answer"))
    })
    .await;
    outbox.pong(Bytes::from_static(b"still here"));
    until(&mut inbound, |received| *received == Received::Pong).await;
}

#[tokio::test]
async fn who_leaves_megabytes_of_answers_unread_is_not_read_from() {
    let (ours, theirs) = tokio::io::duplex(1024);
    let outbox = Outbox::new(CancellationToken::new());
    let framing = Framing::WebSocket(Role::Server);
    tokio::spawn(deliver(
        outbox.clone(),
        Box::new(theirs),
        framing,
        Delivery::default(),
    ));
    for _ in 0..6 {
        outbox.answer(Answer::new(vec![b'x'; 1 << 20]));
    }
    let waited = tokio::time::timeout(Duration::from_millis(100), outbox.listening()).await;
    assert!(waited.is_err(), "too much is unread");
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
    let (_, listening) = tokio::join!(
        read,
        tokio::time::timeout(Duration::from_secs(20), outbox.listening())
    );
    assert!(listening.is_ok(), "now it has been read");
}

/// Has seen something of which it has nothing to say.
#[derive(Default)]
struct Silent {
    told: tokio::sync::Notify,
}

impl Feed for Silent {
    fn fill(&self, _: &mut Frames, _: usize) -> More {
        More::No
    }

    fn written(&self) {
        self.told.notify_one();
    }
}

#[tokio::test]
async fn who_has_nothing_to_say_is_told_all_the_same() {
    let (_ours, theirs) = tokio::io::duplex(1024);
    let outbox = Outbox::new(CancellationToken::new());
    let task = deliver(
        outbox.clone(),
        Box::new(theirs),
        Framing::Lines,
        Delivery::default(),
    );
    tokio::spawn(task);
    let feed = Arc::new(Silent::default());
    outbox.ready(Arc::clone(&feed) as Arc<dyn Feed>);
    tokio::time::timeout(Duration::from_secs(20), feed.told.notified())
        .await
        .expect("it is told");
}

#[tokio::test]
async fn a_very_large_answer_comes_in_parts_and_the_peer_is_still_asked() {
    for framing in [Framing::WebSocket(Role::Server), Framing::Lines] {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let outbox = Outbox::new(CancellationToken::new());
        let delivery = Delivery {
            ping_every: Duration::from_millis(1),
            ..Delivery::default()
        };
        tokio::spawn(deliver(outbox.clone(), Box::new(theirs), framing, delivery));
        let large: Vec<u8> = (0..5_000_000_u32)
            .map(|at| b'a' + (at % 26) as u8)
            .collect();
        outbox.answer(Answer::new(b"before".to_vec()));
        outbox.answer(Answer::new(large.clone()));
        outbox.answer(Answer::new(b"behind".to_vec()));
        let reading = match framing {
            Framing::Lines => Framing::Lines,
            Framing::WebSocket(_) => Framing::WebSocket(Role::Client),
        };
        let mut inbound = Inbound::new(Box::new(ours), reading, 1 << 23, None);
        let (mut messages, mut pings_before_it) = (Vec::new(), 0);
        let read = async {
            while messages.len() < 3 {
                match inbound.next().await.expect("frames").expect("no end") {
                    Received::Message(message) => messages.push(message),
                    Received::Ping(_) if messages.len() == 1 => pings_before_it += 1,
                    _ => {}
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), read)
            .await
            .expect("all of it comes");
        assert_eq!(messages[0], b"before"[..]);
        assert!(messages[1] == large, "the parts are the message");
        assert_eq!(messages[2], b"behind"[..]);
        if let Framing::WebSocket(_) = framing {
            assert!(pings_before_it > 1, "nobody was asked meanwhile");
        }
    }
}

#[tokio::test]
async fn who_says_goodbye_behind_a_large_answer_has_sent_it() {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let outbox = Outbox::new(CancellationToken::new());
    let framing = Framing::WebSocket(Role::Server);
    outbox.answer(Answer::new(vec![b'x'; 5 << 20]));
    outbox.close(outpost_rpc::CloseReason::Normal);
    tokio::spawn(deliver(
        outbox,
        Box::new(theirs),
        framing,
        Delivery::default(),
    ));
    let framing = Framing::WebSocket(Role::Client);
    let mut inbound = Inbound::new(Box::new(ours), framing, 1 << 23, None);
    let read = async {
        let first = inbound.next().await.expect("frames").expect("no end");
        assert!(matches!(first, Received::Message(message) if message.len() == 5 << 20));
        let second = inbound.next().await.expect("frames").expect("no end");
        assert_eq!(second, Received::Close(Some(1000)));
    };
    tokio::time::timeout(Duration::from_secs(20), read)
        .await
        .expect("both come");
}
/// Every other message is one that isn't copied into the frames.
#[tokio::test]
async fn large_and_small_answers_arrive_whole_and_in_order() {
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
        let answers: Vec<Vec<u8>> = (0..6_u8)
            .map(|number| vec![b'a' + number; if number % 2 == 0 { 1 << 20 } else { 10 }])
            .collect();
        for answer in &answers {
            outbox.answer(Answer::new(answer.clone()));
        }
        outbox.close(outpost_rpc::CloseReason::Normal);
        let task = deliver(outbox.clone(), Box::new(theirs), here, Delivery::default());
        tokio::spawn(task);
        let mut inbound = Inbound::new(Box::new(ours), there, 2 << 20, None);
        for answer in answers {
            let received = tokio::time::timeout(Duration::from_secs(20), inbound.next()).await;
            let received = received.expect("it comes").expect("frames");
            assert_eq!(received, Some(Received::Message(answer.into())), "{here:?}");
        }
    }
}

/// Says one thing.
struct Word(&'static [u8]);

impl Feed for Word {
    fn fill(&self, frames: &mut Frames, _: usize) -> More {
        frames.message(self.0);
        More::No
    }

    fn written(&self) {}
}

/// Somebody answers and then announces a feed, just while the writer is busy
/// with another one.
struct Meanwhile {
    outbox: Outbox,
    answer: Vec<u8>,
}

impl Feed for Meanwhile {
    fn fill(&self, frames: &mut Frames, _: usize) -> More {
        frames.message(b"in between");
        self.outbox.answer(Answer::new(self.answer.clone()));
        self.outbox.ready(Arc::new(Word(b"event")));
        More::No
    }

    fn written(&self) {}
}

#[tokio::test]
async fn an_event_that_is_announced_behind_an_answer_comes_behind_it() {
    // Small, and so large that it goes out in parts.
    for bytes in [6, 5 << 20] {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let outbox = Outbox::new(CancellationToken::new());
        let answer = vec![b'a'; bytes];
        outbox.ready(Arc::new(Meanwhile {
            outbox: outbox.clone(),
            answer: answer.clone(),
        }));
        let framing = Framing::WebSocket(Role::Server);
        tokio::spawn(deliver(
            outbox,
            Box::new(theirs),
            framing,
            Delivery::default(),
        ));
        let framing = Framing::WebSocket(Role::Client);
        let mut inbound = Inbound::new(Box::new(ours), framing, 1 << 23, None);
        for expected in [b"in between".to_vec(), answer, b"event".to_vec()] {
            let received = tokio::time::timeout(Duration::from_secs(20), inbound.next()).await;
            let received = received.expect("it comes").expect("frames");
            let Some(Received::Message(message)) = received else {
                panic!("no message: {received:?}");
            };
            assert!(message == expected, "{} bytes came first", message.len());
        }
    }
}
