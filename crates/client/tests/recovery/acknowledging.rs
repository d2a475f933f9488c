//! Where output is acknowledged, nothing is lost and nobody is flooded.

use std::time::Duration;

use outpost_client::{Place as _, RemoteOptions};
use serde_json::json;
use tokio::time::Instant;

use crate::sim::{Sim, brief, capable, page, soon, started};

const PIECE: usize = 32 * 1024;

fn options() -> RemoteOptions {
    let mut options = RemoteOptions::default();
    options.limits.window_bytes = 4 * PIECE;
    options.limits.retain_bytes = 4 * PIECE;
    options
}

#[tokio::test(start_paused = true)]
async fn what_a_reader_does_not_take_is_not_acknowledged() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect_with(options(), capable()).await;
    let process = started(&remote, &mut line, "p").await;
    let mut events = process.events();
    let piece = vec![b'x'; PIECE];
    for seq in 1..=8 {
        line.output("p", seq, &piece).await;
    }
    // Its own buffer holds four; two at a time are worth a message, and what is
    // left of them is due a little later.
    assert_eq!(
        line.said("process/ack").await,
        json!({"processId": "p", "seq": 2})
    );
    assert_eq!(
        line.said("process/ack").await,
        json!({"processId": "p", "seq": 3})
    );
    line.is_quiet_for(Duration::from_secs(20)).await;
    for _ in 1..=8 {
        soon("an event", events.next()).await.unwrap();
    }
    // Taking the next one says that these are taken.
    let next = async {
        assert_eq!(
            line.said("process/ack").await,
            json!({"processId": "p", "seq": 8})
        );
        line.exited("p", 9, 0).await;
    };
    let (event, ()) = tokio::join!(events.next(), next);
    assert_eq!(brief(event.unwrap()), "9 exit 0");
}

#[tokio::test(start_paused = true)]
async fn a_small_window_of_the_server_does_not_stall_it() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let process = started(&remote, &mut line, "p").await;
    for seq in 1..=5 {
        line.output("p", seq, b"a few bytes").await;
        let ack = line.said("process/ack").await;
        assert_eq!(ack, json!({"processId": "p", "seq": seq}));
    }
    drop(process);
}

#[tokio::test(start_paused = true)]
async fn a_resume_goes_on_from_what_was_acknowledged_without_a_read() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect_with(options(), capable()).await;
    let slow = started(&remote, &mut line, "slow").await;
    let quick = started(&remote, &mut line, "quick").await;
    let done = started(&remote, &mut line, "done").await;
    let mut events = slow.events();
    let piece = vec![b'x'; PIECE];
    for seq in 1..=6 {
        line.output("slow", seq, &piece).await;
    }
    line.output("quick", 1, b"one").await;
    line.exited("done", 1, 0).await;
    line.closed("done", 2).await;
    assert_eq!(done.wait().await.unwrap().code, 0);
    let mut wake = quick.wake();
    soon("an event", wake.wait_for(|last| *last == 1))
        .await
        .unwrap();
    drop(line);
    let (mut line, params) = sim.resumed(capable()).await;
    assert_eq!(
        params["resumeFrom"],
        json!({"slow": 3, "quick": 1, "done": 2}),
        "what the slow one has too much of comes again, and is bounded"
    );
    for seq in 4..=6 {
        line.output("slow", seq, &piece).await;
    }
    line.exited("slow", 7, 0).await;
    line.closed("slow", 8).await;
    let mut last = 0;
    while let Some(event) = soon("an event", events.next()).await {
        last += 1;
        assert!(brief(event).starts_with(&format!("{last} ")));
    }
    assert_eq!(last, 8);
    // Nothing was read: acknowledgements are all that was said.
    let rest = tokio::time::timeout(Duration::from_secs(5), async {
        loop {
            line.said("process/ack").await;
        }
    });
    assert!(rest.await.is_err());
    drop((slow, quick, done));
}

#[tokio::test(start_paused = true)]
async fn what_came_during_the_handshake_is_acknowledged_afterwards() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let process = started(&remote, &mut line, "p").await;
    let mut wake = process.wake();
    drop(line);
    let mut line = sim.accept().await;
    let hello = line.asked_for("initialize").await;
    // As much as a small window of the server; it waits then.
    line.output("p", 1, &vec![b'x'; 4 * PIECE]).await;
    soon("all of it", wake.wait_for(|last| *last == 1))
        .await
        .unwrap();
    line.answer(&hello, capable()).await;
    line.said("initialized").await;
    let ack = line.said("process/ack").await;
    assert_eq!(ack, json!({"processId": "p", "seq": 1}));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_attaches_to_is_waited_for_a_while_and_then_let_go() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let before = Instant::now();
    line.output("attached", 1, b"one").await;
    line.output("alone", 1, b"one").await;
    line.output("over", 1, b"one").await;
    line.exited("over", 2, 0).await;
    line.closed("over", 3).await;
    line.is_quiet_for(Duration::from_secs(2)).await;
    let server = async {
        let read = line.asked_for("process/read").await;
        line.answer(&read, page(&[(1, "one")], 2)).await;
        line.said("process/ack").await
    };
    let (attached, acknowledged) = tokio::join!(remote.attach("attached", 0), server);
    let attached = attached.unwrap();
    assert_eq!(acknowledged, json!({"processId": "attached", "seq": 1}));
    let mut let_go = [
        line.said("process/ack").await,
        line.said("process/ack").await,
    ];
    let_go.sort_by_key(ToString::to_string);
    assert_eq!(
        let_go,
        [
            json!({"processId": "alone", "seq": 1}),
            json!({"processId": "over", "seq": 3}),
        ]
    );
    assert!(before.elapsed() >= Duration::from_secs(5));
    assert!(before.elapsed() < Duration::from_secs(7));
    // From now on it isn't held back at all.
    line.output("alone", 2, &vec![b'x'; 2 * PIECE]).await;
    let again = Instant::now();
    assert_eq!(
        line.said("process/ack").await,
        json!({"processId": "alone", "seq": 2})
    );
    assert!(again.elapsed() < Duration::from_secs(1));
    drop(attached);
}
