//! Servers that are overloaded or violate the protocol.

use std::time::Duration;

use outpost_client::{Error, Executor as _, RemoteOptions, Signal};
use serde_json::json;
use tokio::time::Instant;

use crate::sim::{Sim, full_server, old_server, page, soon, started, summarize};

const OVERLOADED: &str = "Server overloaded; retry later.";

#[tokio::test(start_paused = true)]
async fn overloaded_read_is_repeated() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    drop(connection);
    let (mut connection, _) = sim.resumed(old_server()).await;
    for _ in 0..3 {
        let read = connection.expect_request("process/read").await;
        connection.reject(&read, -32001, OVERLOADED).await;
    }
    let read = connection.expect_request("process/read").await;
    connection.respond(&read, page(&[(1, "one")], 2)).await;
    // Likewise after a lost notification.
    connection.output("p", 3, b"three").await;
    let read = connection.expect_request("process/read").await;
    connection.reject(&read, -32001, OVERLOADED).await;
    let read = connection.expect_request("process/read").await;
    connection
        .respond(&read, page(&[(2, "two"), (3, "three")], 4))
        .await;
    connection.exited("p", 4, 0).await;
    connection.closed("p", 5).await;
    assert_eq!(
        summarize(&process).await,
        ["1 one", "2 two", "3 three", "4 exit 0", "5 closed"]
    );
}

#[tokio::test(start_paused = true)]
async fn catch_up_is_limited_in_concurrency() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let mut processes = Vec::new();
    for number in 0..40 {
        processes.push(started(&remote, &mut connection, &number.to_string()).await);
    }
    drop(connection);
    let (mut connection, _) = sim.resumed(old_server()).await;
    let mut reads = Vec::new();
    for _ in 0..16 {
        reads.push(connection.expect_request("process/read").await);
    }
    connection.expect_silence(Duration::from_secs(5)).await;
    for _ in 0..40 - 16 {
        connection.respond(&reads.remove(0), page(&[], 1)).await;
        reads.push(connection.expect_request("process/read").await);
    }
}

#[tokio::test(start_paused = true)]
async fn announced_event_that_never_comes_fails_the_process() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    connection.output("p", 1000, b"x").await;
    let before = Instant::now();
    let server = async {
        for _ in 0..3 {
            let read = connection.expect_request("process/read").await;
            connection.respond(&read, page(&[], 1)).await;
        }
        connection.expect_request("process/terminate").await
    };
    let (waited, _) = tokio::join!(soon("the failure", process.wait()), server);
    assert!(
        matches!(waited, Err(Error::Gap { from: 1, .. })),
        "{waited:?}"
    );
    assert!(before.elapsed() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn event_numbers_out_of_range_are_rejected() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    for (chunk, next) in [(u64::MAX, 2), (1, u64::MAX)] {
        let server = async {
            let read = connection.expect_request("process/read").await;
            connection.respond(&read, page(&[(chunk, "x")], next)).await;
        };
        let (attached, ()) = tokio::join!(remote.attach("p", 0), server);
        assert!(matches!(attached, Err(Error::ProcessFailed { .. })));
    }
    let server = async {
        let read = connection.expect_request("process/read").await;
        connection.respond(&read, page(&[], 1)).await;
    };
    let (attached, ()) = tokio::join!(remote.attach("p", u64::MAX), server);
    attached.unwrap();
    let process = started(&remote, &mut connection, "q").await;
    connection.output("q", u64::MAX, b"never").await;
    connection.output("q", 1, b"one").await;
    connection.exited("q", 2, 0).await;
    connection.closed("q", 3).await;
    assert_eq!(summarize(&process).await, ["1 one", "2 exit 0", "3 closed"]);
}

#[tokio::test(start_paused = true)]
async fn server_that_ignores_the_window_fails_the_process() {
    let mut sim = Sim::new();
    let mut options = RemoteOptions::default();
    options.limits.window_bytes = 1024;
    options.limits.retain_bytes = 1024;
    let (remote, mut connection) = sim.connect_with(options, full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    for seq in 1..=66 {
        connection.output("p", seq, &[b'x'; 1024]).await;
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
async fn server_that_does_not_read_responses_is_not_read() {
    let mut sim = Sim::new();
    let (_remote, mut connection) = sim.connect(old_server()).await;
    let id = "i".repeat(1 << 20);
    let mut sent = 0;
    let asking = async {
        for _ in 0..100 {
            connection.send(json!({"id": id, "method": "x"})).await;
            sent += 1;
        }
    };
    let stalled = tokio::time::timeout(Duration::from_secs(5), asking).await;
    assert!(stalled.is_err(), "{sent} were accepted");
    // Once the server reads, it is read again.
    connection.next().await;
}

#[tokio::test(start_paused = true)]
async fn invalid_response_fails_only_its_call() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    let server = async {
        let list = connection.expect_request("process/list").await;
        // An error without a code is invalid.
        connection
            .send(json!({"id": list["id"], "error": {"message": 17}}))
            .await;
        let list = connection.expect_request("process/list").await;
        connection.respond(&list, json!({"processes": []})).await;
        connection.exited("p", 1, 0).await;
        connection.closed("p", 2).await;
    };
    let calls = async {
        let error = soon("the failure", remote.processes()).await.unwrap_err();
        assert!(matches!(error, Error::InvalidResponse { .. }), "{error}");
        assert!(
            error
                .to_string()
                .starts_with("invalid response to process/list: ")
        );
        assert!(
            soon("a response", remote.processes())
                .await
                .unwrap()
                .is_empty()
        );
    };
    tokio::join!(calls, server);
    assert_eq!(summarize(&process).await, ["1 exit 0", "2 closed"]);
}

#[tokio::test(start_paused = true)]
async fn unattributed_error_belongs_to_the_only_call() {
    const PARSE_ERROR: &str = "failed to parse websocket JSON-RPC message";
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    for id in [json!(-1), json!(null)] {
        let server = async {
            // This error is not about a request.
            let text = "unexpected notification method: process/ack";
            let error = json!({"code": -32600, "message": text});
            connection.expect_request("process/list").await;
            connection.send(json!({"id": id, "error": error})).await;
            let error = json!({"code": -32600, "message": PARSE_ERROR});
            connection.send(json!({"id": id, "error": error})).await;
        };
        let (refused, ()) = tokio::join!(soon("the rejection", remote.processes()), server);
        let error = refused.unwrap_err();
        assert!(
            matches!(&error, Error::Rejected { code: -32600, message, .. } if message == PARSE_ERROR),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn ambiguous_error_drops_the_connection() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    let server = async {
        connection.expect_request("process/signal").await;
        connection.expect_request("process/signal").await;
        let error = json!({"code": -32600, "message": "failed to parse"});
        connection.send(json!({"id": -1, "error": error})).await;
        connection.wait_closed().await;
        sim.resumed(full_server()).await
    };
    let calls = async {
        let (first, second) = tokio::join!(
            process.signal(Signal::Interrupt),
            process.signal(Signal::Interrupt)
        );
        for lost in [first, second] {
            let message = lost.unwrap_err().to_string();
            assert!(
                message.contains("did not understand one of several requests"),
                "{message}"
            );
        }
    };
    let (_connection, ()) = tokio::join!(server, soon("the failures", calls));
}

#[tokio::test(start_paused = true)]
async fn invalid_message_with_pending_calls_drops_the_connection() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    // Without pending calls, it is ignored.
    connection.send(json!(["nothing"])).await;
    connection.output("p", 1, b"one").await;
    let mut wake = process.wake();
    let heard = wake.wait_for(|last| *last == 1);
    soon("the output", heard).await.unwrap();
    connection.expect_notification("process/ack").await;
    let server = async {
        connection.expect_request("process/signal").await;
        connection
            .send(json!({"id": {"of": "none"}, "result": {}}))
            .await;
        connection.wait_closed().await;
        let (mut connection, _) = sim.resumed(full_server()).await;
        connection.exited("p", 2, 0).await;
        connection.closed("p", 3).await;
        connection
    };
    let (lost, _connection) = tokio::join!(
        soon("the failure", process.signal(Signal::Interrupt)),
        server
    );
    let message = lost.unwrap_err().to_string();
    assert!(
        message.contains("invalid message from the server: "),
        "{message}"
    );
    assert_eq!(summarize(&process).await, ["1 one", "2 exit 0", "3 closed"]);
}
