//! Acknowledged delivery.

use std::time::Duration;

use outpost_client::{Executor as _, RemoteOptions};
use serde_json::json;
use tokio::time::Instant;

use crate::sim::{Sim, full_server, page, soon, started, summarize, summary};

const CHUNK: usize = 32 * 1024;

fn options() -> RemoteOptions {
    let mut options = RemoteOptions::default();
    options.limits.window_bytes = 4 * CHUNK;
    options.limits.retain_bytes = 4 * CHUNK;
    options
}

#[tokio::test(start_paused = true)]
async fn unread_output_is_not_acknowledged() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect_with(options(), full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    let mut events = process.events();
    let chunk = vec![b'x'; CHUNK];
    for seq in 1..=8 {
        connection.output("p", seq, &chunk).await;
    }
    // The window holds four chunks. Two are acknowledged at once, the rest after the delay.
    assert_eq!(
        connection.expect_notification("process/ack").await,
        json!({"processId": "p", "seq": 2})
    );
    assert_eq!(
        connection.expect_notification("process/ack").await,
        json!({"processId": "p", "seq": 3})
    );
    connection.expect_silence(Duration::from_secs(20)).await;
    for _ in 1..=8 {
        soon("an event", events.next()).await.unwrap();
    }
    // Asking for the next event confirms the previous ones.
    let next = async {
        assert_eq!(
            connection.expect_notification("process/ack").await,
            json!({"processId": "p", "seq": 8})
        );
        connection.exited("p", 9, 0).await;
    };
    let (event, ()) = tokio::join!(events.next(), next);
    assert_eq!(summary(event.unwrap()), "9 exit 0");
}

#[tokio::test(start_paused = true)]
async fn small_server_window_does_not_stall() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    for seq in 1..=5 {
        connection.output("p", seq, b"a few bytes").await;
        let ack = connection.expect_notification("process/ack").await;
        assert_eq!(ack, json!({"processId": "p", "seq": seq}));
    }
    drop(process);
}

#[tokio::test(start_paused = true)]
async fn resume_continues_after_the_acknowledged_events() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect_with(options(), full_server()).await;
    let slow = started(&remote, &mut connection, "slow").await;
    let quick = started(&remote, &mut connection, "quick").await;
    let done = started(&remote, &mut connection, "done").await;
    let mut events = slow.events();
    let chunk = vec![b'x'; CHUNK];
    for seq in 1..=6 {
        connection.output("slow", seq, &chunk).await;
    }
    connection.output("quick", 1, b"one").await;
    connection.exited("done", 1, 0).await;
    connection.closed("done", 2).await;
    assert_eq!(done.wait().await.unwrap().code, 0);
    let mut wake = quick.wake();
    soon("an event", wake.wait_for(|last| *last == 1))
        .await
        .unwrap();
    drop(connection);
    let (mut connection, params) = sim.resumed(full_server()).await;
    assert_eq!(
        params["resumeFrom"],
        json!({"slow": 3, "quick": 1, "done": 2}),
        "unacknowledged output of the slow process is sent again"
    );
    for seq in 4..=6 {
        connection.output("slow", seq, &chunk).await;
    }
    connection.exited("slow", 7, 0).await;
    connection.closed("slow", 8).await;
    let mut last = 0;
    while let Some(event) = soon("an event", events.next()).await {
        last += 1;
        assert!(summary(event).starts_with(&format!("{last} ")));
    }
    assert_eq!(last, 8);
    // The client sent acknowledgements only, no reads.
    let rest = tokio::time::timeout(Duration::from_secs(5), async {
        loop {
            connection.expect_notification("process/ack").await;
        }
    });
    assert!(rest.await.is_err());
    drop((slow, quick, done));
}

#[tokio::test(start_paused = true)]
async fn events_during_the_handshake_are_acknowledged_later() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    let mut wake = process.wake();
    drop(connection);
    let mut connection = sim.accept().await;
    let hello = connection.expect_request("initialize").await;
    // More than the small window of the server, which then waits.
    connection.output("p", 1, &vec![b'x'; 4 * CHUNK]).await;
    soon("all of it", wake.wait_for(|last| *last == 1))
        .await
        .unwrap();
    connection.respond(&hello, full_server()).await;
    connection.expect_notification("initialized").await;
    let ack = connection.expect_notification("process/ack").await;
    assert_eq!(ack, json!({"processId": "p", "seq": 1}));
}

#[tokio::test(start_paused = true)]
async fn unclaimed_processes_expire() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let before = Instant::now();
    connection.output("attached", 1, b"one").await;
    connection.output("alone", 1, b"one").await;
    connection.output("over", 1, b"one").await;
    connection.exited("over", 2, 0).await;
    connection.closed("over", 3).await;
    connection.expect_silence(Duration::from_secs(2)).await;
    let server = async {
        let read = connection.expect_request("process/read").await;
        connection.respond(&read, page(&[(1, "one")], 2)).await;
        connection.expect_notification("process/ack").await
    };
    let (attached, acknowledged) = tokio::join!(remote.attach("attached", 0), server);
    let attached = attached.unwrap();
    assert_eq!(acknowledged, json!({"processId": "attached", "seq": 1}));
    let mut expired = [
        connection.expect_notification("process/ack").await,
        connection.expect_notification("process/ack").await,
    ];
    expired.sort_by_key(ToString::to_string);
    assert_eq!(
        expired,
        [
            json!({"processId": "alone", "seq": 1}),
            json!({"processId": "over", "seq": 3}),
        ]
    );
    assert!(before.elapsed() >= Duration::from_secs(5));
    assert!(before.elapsed() < Duration::from_secs(7));
    // An expired process is not held back.
    connection.output("alone", 2, &vec![b'x'; 2 * CHUNK]).await;
    let again = Instant::now();
    assert_eq!(
        connection.expect_notification("process/ack").await,
        json!({"processId": "alone", "seq": 2})
    );
    assert!(again.elapsed() < Duration::from_secs(1));
    drop(attached);
}

#[tokio::test(start_paused = true)]
async fn resume_of_many_processes_is_not_too_large() {
    const PROCESSES: usize = 3000;
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let mut processes = Vec::new();
    for number in 0..PROCESSES {
        let process = started(&remote, &mut connection, &format!("process-{number:04}")).await;
        processes.push(process);
    }
    let last = processes.last().expect("processes");
    connection.output(last.id(), 1, b"one").await;
    let mut wake = last.wake();
    soon("an event", wake.wait_for(|last| *last == 1))
        .await
        .unwrap();
    drop(connection);
    let (mut connection, params) = sim.resumed(full_server()).await;
    assert!(params.to_string().len() < 64 * 1024);
    let sent = params["resumeFrom"].as_object().expect("numbers").len();
    assert!((1000..PROCESSES).contains(&sent), "{sent}");
    // The others are acknowledged afterwards.
    for _ in sent..PROCESSES {
        let ack = connection.expect_notification("process/ack").await;
        let seq = u64::from(ack["processId"] == last.id());
        assert_eq!(ack["seq"], seq, "{ack}");
    }
    // An event that comes again is dropped.
    connection.output(last.id(), 1, b"one").await;
    connection.output(last.id(), 2, b"two").await;
    connection.exited(last.id(), 3, 0).await;
    connection.closed(last.id(), 4).await;
    assert_eq!(
        summarize(last).await,
        ["1 one", "2 two", "3 exit 0", "4 closed"]
    );
}
