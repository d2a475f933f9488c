//! Tests that writes to a child that doesn't read block nothing else.

use outpost_testkit::{Client, EventLog, Start, programs, sh};
use serde_json::json;

use crate::{outpost, ready, ready_with};

const PIECE: usize = 512 * 1024;

/// Fills the queue of a process that doesn't read. Returns the write requests, of which the last
/// ones have no response yet.
async fn fill(client: &Client, id: &str) -> Vec<i64> {
    let mut requests = Vec::new();
    for n in 0..6 {
        let bytes = vec![b'a' + n; PIECE];
        requests.push(client.request_write(id, bytes, &format!("w{n}")).await);
    }
    assert_eq!(
        client.response(requests[0]).await,
        Ok(json!({"status": "accepted"}))
    );
    requests
}

/// Checks that the last write still has no response after other requests completed.
async fn check_blocked(client: &Client, requests: &[i64]) {
    let last = *requests.last().expect("a request");
    client
        .run(Start::new(
            &format!("other{}", client.fresh_id()),
            &["true"],
        ))
        .await;
    assert!(!client.has_response(last), "a full queue accepted it");
}

#[tokio::test]
async fn full_queue_blocks_only_its_process() {
    let (_server, client) = ready().await;
    client
        .start(sh("full", programs::NEVER_READS).stdin())
        .await;
    client.start(Start::new("cat", &["cat"]).stdin()).await;
    let requests = fill(&client, "full").await;
    for n in 0..20 {
        client
            .write("cat", format!("echo{n}\n"), &format!("e{n}"))
            .await;
        client.wait_output("cat", &format!("echo{n}\n")).await;
    }
    check_blocked(&client, &requests).await;
    client.terminate_and_wait("cat").await;
    client.terminate_and_wait("full").await;
}

#[tokio::test]
async fn control_overtakes_queued_writes() {
    let (_server, client) = ready().await;
    let script = "trap 'echo signalled' USR1; echo ready; while :; do sleep 0.02; done";
    client.start(sh("full", script).stdin()).await;
    client.wait_output("full", "ready").await;
    let requests = fill(&client, "full").await;
    client.signal("full", "user1").await;
    client.wait_output("full", "signalled").await;
    check_blocked(&client, &requests).await;
    assert!(client.terminate("full").await);
    client.closed("full").await;
    // Pending writes are completed with their status.
    let last = client.response(*requests.last().expect("a request")).await;
    assert_eq!(last, Ok(json!({"status": "stdinClosed"})));
}

#[tokio::test]
async fn terminal_with_a_full_queue_can_be_resized() {
    let (_server, client) = ready().await;
    let script = "stty raw -echo; trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done";
    client.start(sh("full", script).tty()).await;
    client.wait_output("full", "ready").await;
    let requests = fill(&client, "full").await;
    let size = json!({"processId": "full", "size": {"rows": 33, "cols": 44}});
    client.call("process/resize", size).await;
    client.wait_output("full", "33 44").await;
    check_blocked(&client, &requests).await;
    client.terminate_and_wait("full").await;
}

#[tokio::test]
async fn terminal_may_close_with_queued_writes() {
    let (_server, client) = ready().await;
    // Repeated, because it depends on which event comes first: the hangup of the terminal or the
    // exit of its leader.
    for n in 0..40 {
        let id = format!("p{n}");
        let script = "stty raw -echo; trap 'exit 5' USR1; echo ready; while :; do sleep 0.01; done";
        client.start(sh(&id, script).tty()).await;
        client.wait_output(&id, "ready").await;
        assert_eq!(
            client.write(&id, vec![b'x'; 300_000], "w").await,
            "accepted"
        );
        let code = if n % 4 == 0 {
            client.signal(&id, "user1").await;
            5
        } else {
            client.terminate(&id).await;
            137
        };
        assert_eq!(client.closed(&id).await.code(), code);
    }
    client.check_alive().await;
}

#[tokio::test]
async fn full_queue_blocks_only_its_process_at_concurrency_one() {
    let (_server, client) = ready_with(&["--concurrent-requests", "1"]).await;
    client
        .start(sh("full", programs::NEVER_READS).stdin())
        .await;
    let requests = fill(&client, "full").await;
    client.start(Start::new("cat", &["cat"]).stdin()).await;
    client.write("cat", "hello\n", "e").await;
    client.wait_output("cat", "hello\n").await;
    check_blocked(&client, &requests).await;
    client.terminate_and_wait("cat").await;
    client.terminate_and_wait("full").await;
}

#[tokio::test]
async fn write_larger_than_the_queue_succeeds() {
    let (_server, client) = ready().await;
    client.start(Start::new("p", &["wc", "-c"]).stdin()).await;
    let large = vec![b'x'; 5 * 1024 * 1024];
    assert_eq!(client.write("p", &large, "w1").await, "accepted");
    assert_eq!(client.write("p", &large, "w2").await, "accepted");
    assert_eq!(client.write_last("p", "!").await, "accepted");
    let log = client.closed("p").await;
    assert_eq!(log.text().trim(), (2 * large.len() + 1).to_string());
}

#[tokio::test]
async fn queued_writes_arrive_in_order() {
    let (server, client) = ready().await;
    let go = server.dir().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.02; done; cat", go.display());
    client.start(sh("p", &script).stdin()).await;
    let requests = fill(&client, "p").await;
    let last = json!({"processId": "p", "chunk": "", "closeStdin": true});
    let last = client.request("process/write", last).await;
    check_blocked(&client, &requests).await;
    std::fs::write(&go, "").expect("a file");
    for request in requests.into_iter().chain([last]) {
        assert_eq!(
            client.response(request).await,
            Ok(json!({"status": "accepted"}))
        );
    }
    let output = client.closed("p").await.output();
    let expected: Vec<u8> = (0..6).flat_map(|n| vec![b'a' + n; PIECE]).collect();
    assert!(output == expected, "{} bytes came back", output.len());
}

#[tokio::test]
async fn write_survives_its_connection() {
    let (server, client) = ready().await;
    let file = server.dir().join("written");
    let script = format!("exec cat > {}", file.display());
    client.start(sh("p", &script).stdin()).await;
    client.request_write("p", "last words", "w").await;
    client.cut().await;
    outpost_testkit::deadline::poll_until("the last output", || {
        std::fs::read_to_string(&file)
            .ok()
            .filter(|text| text == "last words")
    })
    .await;
}

#[tokio::test]
async fn queued_write_survives_its_connection() {
    let (server, client) = ready().await;
    let (go, file) = (server.dir().join("go"), server.dir().join("written"));
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.02; done; wc -c > {}",
        go.display(),
        file.display()
    );
    client.start(sh("p", &script).stdin()).await;
    let requests = fill(&client, "p").await;
    let last = json!({"processId": "p", "chunk": "", "closeStdin": true});
    client.request("process/write", last).await;
    check_blocked(&client, &requests).await;
    client.cut().await;
    std::fs::write(&go, "").expect("a file");
    outpost_testkit::deadline::poll_until("all that was written", || {
        let text = std::fs::read_to_string(&file).ok()?;
        (text.trim() == (6 * PIECE).to_string()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn retry_of_a_queued_write_is_written_once() {
    let server = outpost().start().await;
    let client = server.connect().await;
    let session = client.handshake().await["sessionId"].clone();
    let go = server.dir().join("go");
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.02; done; wc -c; exec sleep 1000",
        go.display()
    );
    client.start(sh("p", &script).stdin()).await;
    let requests = fill(&client, "p").await;
    check_blocked(&client, &requests).await;
    let next = server.connect().await;
    next.take_over(&session).await;
    // Some of these were written, one is blocked and the others are queued.
    let retries = fill(&next, "p").await;
    next.check_alive().await;
    assert!(!next.has_response(retries[5]), "a full queue accepted it");
    std::fs::write(&go, "").expect("a file");
    for retry in retries {
        let response = next.response(retry).await;
        assert_eq!(response, Ok(json!({"status": "accepted"})));
    }
    assert_eq!(next.write_last("p", "").await, "accepted");
    next.wait_output("p", &format!("{}\n", 6 * PIECE)).await;
    next.terminate("p").await;
}

/// Writes output now and then and never reads.
const TICKS: &str = "while :; do echo tick; sleep 0.05; done";

#[tokio::test]
async fn reads_overtake_queued_writes() {
    let (_server, client) = ready().await;
    // One that is running, and one that is just starting.
    client.start(sh("runs", TICKS).stdin()).await;
    client.wait_output("runs", "tick").await;
    for id in ["runs", "starts"] {
        if id == "starts" {
            client.request_start(sh(id, TICKS).stdin()).await;
        }
        let requests = fill(&client, id).await;
        let at_once = client.read(id, json!({"waitMs": 0})).await;
        let next = at_once["nextSeq"].as_u64().expect("a number");
        let page = json!({"afterSeq": next + 1, "waitMs": 600_000});
        let page = client.read(id, page).await;
        assert!(EventLog::page_bytes(&page).starts_with(b"tick"), "{page}");
        check_blocked(&client, &requests).await;
        client.terminate_and_wait(id).await;
    }
}

#[tokio::test]
async fn long_poll_after_queued_writes_learns_of_a_takeover() {
    let server = outpost().start().await;
    let old = server.connect().await;
    let session = old.handshake().await["sessionId"].clone();
    old.start(sh("full", programs::NEVER_READS).stdin()).await;
    fill(&old, "full").await;
    let poll = json!({"processId": "full", "afterSeq": 999, "waitMs": 600_000});
    let poll = old.request("process/read", poll).await;
    old.check_alive().await;
    let new = server.connect().await;
    new.take_over(&session).await;
    let rejected = old.response(poll).await.unwrap_err();
    assert_eq!(
        rejected.parts(),
        (-32600, "session has been resumed by another connection")
    );
    assert!(new.terminate("full").await);
}
