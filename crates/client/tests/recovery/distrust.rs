//! A server that has too much to do, or that can't count.

use std::time::Duration;

use outpost_client::{Error, Place as _, RemoteOptions};
use serde_json::json;
use tokio::time::Instant;

use crate::sim::{Sim, capable, page, released, soon, started, tale};

const OVERLOADED: &str = "Server overloaded; retry later.";

#[tokio::test(start_paused = true)]
async fn a_server_that_is_busy_is_asked_again() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let process = started(&remote, &mut line, "p").await;
    drop(line);
    let (mut line, _) = sim.resumed(released()).await;
    for _ in 0..3 {
        let read = line.asked_for("process/read").await;
        line.refuse(&read, -32001, OVERLOADED).await;
    }
    let read = line.asked_for("process/read").await;
    line.answer(&read, page(&[(1, "one")], 2)).await;
    // And the same when nothing was lost but a message.
    line.output("p", 3, b"three").await;
    let read = line.asked_for("process/read").await;
    line.refuse(&read, -32001, OVERLOADED).await;
    let read = line.asked_for("process/read").await;
    line.answer(&read, page(&[(2, "two"), (3, "three")], 4))
        .await;
    line.exited("p", 4, 0).await;
    line.closed("p", 5).await;
    assert_eq!(
        tale(&process).await,
        ["1 one", "2 two", "3 three", "4 exit 0", "5 closed"]
    );
}

#[tokio::test(start_paused = true)]
async fn many_are_caught_up_with_a_few_at_a_time() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let mut processes = Vec::new();
    for number in 0..40 {
        processes.push(started(&remote, &mut line, &number.to_string()).await);
    }
    drop(line);
    let (mut line, _) = sim.resumed(released()).await;
    let mut reads = Vec::new();
    for _ in 0..16 {
        reads.push(line.asked_for("process/read").await);
    }
    line.is_quiet_for(Duration::from_secs(5)).await;
    for _ in 0..40 - 16 {
        line.answer(&reads.remove(0), page(&[], 1)).await;
        reads.push(line.asked_for("process/read").await);
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_nobody_has_ends_the_asking() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let process = started(&remote, &mut line, "p").await;
    line.output("p", 1000, b"x").await;
    let before = Instant::now();
    let server = async {
        for _ in 0..3 {
            let read = line.asked_for("process/read").await;
            line.answer(&read, page(&[], 1)).await;
        }
        line.asked_for("process/terminate").await
    };
    let (waited, _) = tokio::join!(soon("the failure", process.wait()), server);
    assert!(
        matches!(waited, Err(Error::Gap { from: 1, .. })),
        "{waited:?}"
    );
    assert!(before.elapsed() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn numbers_beyond_all_counting_are_refused() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    for (chunk, next) in [(u64::MAX, 2), (1, u64::MAX)] {
        let server = async {
            let read = line.asked_for("process/read").await;
            line.answer(&read, page(&[(chunk, "x")], next)).await;
        };
        let (attached, ()) = tokio::join!(remote.attach("p", 0), server);
        assert!(matches!(attached, Err(Error::ProcessFailed { .. })));
    }
    let server = async {
        let read = line.asked_for("process/read").await;
        line.answer(&read, page(&[], 1)).await;
    };
    let (attached, ()) = tokio::join!(remote.attach("p", u64::MAX), server);
    attached.unwrap();
    let process = started(&remote, &mut line, "q").await;
    line.output("q", u64::MAX, b"never").await;
    line.output("q", 1, b"one").await;
    line.exited("q", 2, 0).await;
    line.closed("q", 3).await;
    assert_eq!(tale(&process).await, ["1 one", "2 exit 0", "3 closed"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_waits_for_no_acknowledgement_is_given_up() {
    let mut sim = Sim::new();
    let mut options = RemoteOptions::default();
    options.limits.window_bytes = 1024;
    options.limits.retain_bytes = 1024;
    let (remote, mut line) = sim.connect_with(options, capable()).await;
    let process = started(&remote, &mut line, "p").await;
    for seq in 1..=66 {
        line.output("p", seq, &[b'x'; 1024]).await;
    }
    let failed = async {
        let mut news = process.wake();
        loop {
            let page = process.read(0, None, Duration::ZERO).await.unwrap();
            if let Some(failure) = page.failure {
                break failure;
            }
            news.changed().await.unwrap();
        }
    };
    assert_eq!(
        soon("the failure", failed).await,
        "process p failed: the server does not wait for acknowledgements"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_and_does_not_read_is_not_read_either() {
    let mut sim = Sim::new();
    let (_remote, mut line) = sim.connect(released()).await;
    let id = "i".repeat(1 << 20);
    let mut sent = 0;
    let asking = async {
        for _ in 0..100 {
            line.send(json!({"id": id, "method": "x"})).await;
            sent += 1;
        }
    };
    let stalled = tokio::time::timeout(Duration::from_secs(5), asking).await;
    assert!(stalled.is_err(), "{sent} were taken");
    // Who reads again is heard again.
    line.next().await;
}
