//! A server that has too much to do, or that can't count.

use std::time::Duration;

use outpost_client::{Error, Place as _, RemoteOptions, SignalName};
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

#[tokio::test(start_paused = true)]
async fn an_answer_that_makes_no_sense_fails_its_call_alone() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let process = started(&remote, &mut line, "p").await;
    let server = async {
        let list = line.asked_for("process/list").await;
        // No code, so it is no error that anybody could read.
        line.send(json!({"id": list["id"], "error": {"message": 17}}))
            .await;
        let list = line.asked_for("process/list").await;
        line.answer(&list, json!({"processes": []})).await;
        line.exited("p", 1, 0).await;
        line.closed("p", 2).await;
    };
    let calls = async {
        let error = soon("the failure", remote.processes()).await.unwrap_err();
        assert!(matches!(error, Error::Nonsense { .. }), "{error}");
        assert!(
            error
                .to_string()
                .starts_with("the answer to process/list makes no sense: ")
        );
        assert!(
            soon("an answer", remote.processes())
                .await
                .unwrap()
                .is_empty()
        );
    };
    tokio::join!(calls, server);
    assert_eq!(tale(&process).await, ["1 exit 0", "2 closed"]);
}

#[tokio::test(start_paused = true)]
async fn a_complaint_about_nothing_in_particular_is_the_answer_of_the_only_call() {
    const COMPLAINT: &str = "failed to parse websocket JSON-RPC message";
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    for id in [json!(-1), json!(null)] {
        let server = async {
            // This one is not about a call.
            let words = "unexpected notification method: process/ack";
            let error = json!({"code": -32600, "message": words});
            line.asked_for("process/list").await;
            line.send(json!({"id": id, "error": error})).await;
            let error = json!({"code": -32600, "message": COMPLAINT});
            line.send(json!({"id": id, "error": error})).await;
        };
        let (refused, ()) = tokio::join!(soon("the refusal", remote.processes()), server);
        let error = refused.unwrap_err();
        assert!(
            matches!(&error, Error::Refused { code: -32600, message } if message == COMPLAINT),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_complaint_that_may_be_about_any_of_several_calls_leaves_none_waiting() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let process = started(&remote, &mut line, "p").await;
    let server = async {
        line.asked_for("process/signal").await;
        line.asked_for("process/signal").await;
        let error = json!({"code": -32600, "message": "failed to parse"});
        line.send(json!({"id": -1, "error": error})).await;
        line.hung_up().await;
        sim.resumed(capable()).await
    };
    let calls = async {
        let (first, second) = tokio::join!(
            process.signal(SignalName::Interrupt),
            process.signal(SignalName::Interrupt)
        );
        for lost in [first, second] {
            let said = lost.unwrap_err().to_string();
            assert!(
                said.contains("did not understand one of several requests"),
                "{said}"
            );
        }
    };
    let (_line, ()) = tokio::join!(server, soon("the failures", calls));
}

#[tokio::test(start_paused = true)]
async fn nonsense_that_may_be_an_answer_leaves_nobody_waiting() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let process = started(&remote, &mut line, "p").await;
    // Nobody waits, and nobody minds.
    line.send(json!(["nothing"])).await;
    line.output("p", 1, b"one").await;
    let mut wake = process.wake();
    let heard = wake.wait_for(|last| *last == 1);
    soon("the output", heard).await.unwrap();
    line.said("process/ack").await;
    let server = async {
        line.asked_for("process/signal").await;
        line.send(json!({"id": {"of": "nobody"}, "result": {}}))
            .await;
        line.hung_up().await;
        let (mut line, _) = sim.resumed(capable()).await;
        line.exited("p", 2, 0).await;
        line.closed("p", 3).await;
        line
    };
    let (lost, _line) = tokio::join!(
        soon("the failure", process.signal(SignalName::Interrupt)),
        server
    );
    let said = lost.unwrap_err().to_string();
    assert!(said.contains("the server sent nonsense: "), "{said}");
    assert_eq!(tale(&process).await, ["1 one", "2 exit 0", "3 closed"]);
}
