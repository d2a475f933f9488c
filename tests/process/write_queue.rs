//! A child that doesn't read: its writes wait, and nobody else's.

use outpost_testkit::{Client, Start, Story, programs, sh};
use serde_json::json;

use crate::{outpost, ready, ready_with};

const PIECE: usize = 512 * 1024;

/// Fills the queue of a process that doesn't read: requests for writes of which the last ones
/// can't be answered yet.
async fn fill(client: &Client, id: &str) -> Vec<i64> {
    let mut requests = Vec::new();
    for n in 0..6 {
        let bytes = vec![b'a' + n; PIECE];
        requests.push(client.request_write(id, bytes, &format!("w{n}")).await);
    }
    assert_eq!(
        client.answer(requests[0]).await,
        Ok(json!({"status": "accepted"}))
    );
    requests
}

/// Whether the last of the writes still waits, although much else has happened.
async fn still_waits(client: &Client, requests: &[i64]) {
    let last = *requests.last().expect("a request");
    client
        .run(Start::new(
            &format!("other{}", client.fresh_id()),
            &["true"],
        ))
        .await;
    assert!(!client.is_answered(last), "a full queue took it in");
}

#[tokio::test]
async fn a_full_queue_holds_back_its_process_and_no_other() {
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
        client.sees("cat", &format!("echo{n}\n")).await;
    }
    still_waits(&client, &requests).await;
    client.end("cat").await;
    client.end("full").await;
}

#[tokio::test]
async fn control_overtakes_writes_that_wait() {
    let (_server, client) = ready().await;
    let script = "trap 'echo signalled' USR1; echo ready; while :; do sleep 0.02; done";
    client.start(sh("full", script).stdin()).await;
    client.sees("full", "ready").await;
    let requests = fill(&client, "full").await;
    client.signal("full", "user1").await;
    client.sees("full", "signalled").await;
    still_waits(&client, &requests).await;
    assert!(client.terminate("full").await);
    client.closed("full").await;
    // Those that waited are told what became of them.
    let last = client.answer(*requests.last().expect("a request")).await;
    assert_eq!(last, Ok(json!({"status": "stdinClosed"})));
}

#[tokio::test]
async fn a_terminal_can_be_resized_while_its_queue_is_full() {
    let (_server, client) = ready().await;
    let script = "stty raw -echo; trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done";
    client.start(sh("full", script).tty()).await;
    client.sees("full", "ready").await;
    let requests = fill(&client, "full").await;
    let size = json!({"processId": "full", "size": {"rows": 33, "cols": 44}});
    client.call("process/resize", size).await;
    client.sees("full", "33 44").await;
    still_waits(&client, &requests).await;
    client.end("full").await;
}

#[tokio::test]
async fn a_terminal_may_end_while_writes_wait_for_it() {
    let (_server, client) = ready().await;
    // Often, because it depends on what the system tells first: that nobody has the terminal any
    // more, or that its leader has ended.
    for n in 0..40 {
        let id = format!("p{n}");
        let script = "stty raw -echo; trap 'exit 5' USR1; echo ready; while :; do sleep 0.01; done";
        client.start(sh(&id, script).tty()).await;
        client.sees(&id, "ready").await;
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
    client.is_alive().await;
}

#[tokio::test]
async fn with_one_request_at_a_time_a_full_queue_still_holds_back_no_other() {
    let (_server, client) = ready_with(&["--concurrent-requests", "1"]).await;
    client
        .start(sh("full", programs::NEVER_READS).stdin())
        .await;
    let requests = fill(&client, "full").await;
    client.start(Start::new("cat", &["cat"]).stdin()).await;
    client.write("cat", "hello\n", "e").await;
    client.sees("cat", "hello\n").await;
    still_waits(&client, &requests).await;
    client.end("cat").await;
    client.end("full").await;
}

#[tokio::test]
async fn a_write_larger_than_the_queue_goes_through() {
    let (_server, client) = ready().await;
    client.start(Start::new("p", &["wc", "-c"]).stdin()).await;
    let large = vec![b'x'; 5 * 1024 * 1024];
    assert_eq!(client.write("p", &large, "w1").await, "accepted");
    assert_eq!(client.write("p", &large, "w2").await, "accepted");
    assert_eq!(client.write_last("p", "!").await, "accepted");
    let story = client.closed("p").await;
    assert_eq!(story.text().trim(), (2 * large.len() + 1).to_string());
}

#[tokio::test]
async fn what_waited_arrives_in_order_when_the_child_reads_again() {
    let (server, client) = ready().await;
    let go = server.folder().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.02; done; cat", go.display());
    client.start(sh("p", &script).stdin()).await;
    let requests = fill(&client, "p").await;
    let last = json!({"processId": "p", "chunk": "", "closeStdin": true});
    let last = client.request("process/write", last).await;
    still_waits(&client, &requests).await;
    std::fs::write(&go, "").expect("a file");
    for request in requests.into_iter().chain([last]) {
        assert_eq!(
            client.answer(request).await,
            Ok(json!({"status": "accepted"}))
        );
    }
    let output = client.closed("p").await.output();
    let expected: Vec<u8> = (0..6).flat_map(|n| vec![b'a' + n; PIECE]).collect();
    assert!(output == expected, "{} bytes came back", output.len());
}

#[tokio::test]
async fn a_write_takes_effect_although_its_connection_dies() {
    let (server, client) = ready().await;
    let file = server.folder().join("written");
    let script = format!("exec cat > {}", file.display());
    client.start(sh("p", &script).stdin()).await;
    client.request_write("p", "last words", "w").await;
    client.cut().await;
    outpost_testkit::patience::seen("the last words", || {
        std::fs::read_to_string(&file)
            .ok()
            .filter(|text| text == "last words")
    })
    .await;
}

#[tokio::test]
async fn a_write_that_waits_takes_effect_although_its_connection_dies() {
    let (server, client) = ready().await;
    let (go, file) = (server.folder().join("go"), server.folder().join("written"));
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.02; done; wc -c > {}",
        go.display(),
        file.display()
    );
    client.start(sh("p", &script).stdin()).await;
    let requests = fill(&client, "p").await;
    let last = json!({"processId": "p", "chunk": "", "closeStdin": true});
    client.request("process/write", last).await;
    still_waits(&client, &requests).await;
    client.cut().await;
    std::fs::write(&go, "").expect("a file");
    outpost_testkit::patience::seen("all that was written", || {
        let text = std::fs::read_to_string(&file).ok()?;
        (text.trim() == (6 * PIECE).to_string()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_retry_over_the_next_connection_of_a_write_that_waits_is_written_once() {
    let server = outpost().start().await;
    let client = server.connect().await;
    let session = client.shake_hands().await["sessionId"].clone();
    let go = server.folder().join("go");
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.02; done; wc -c; exec sleep 1000",
        go.display()
    );
    client.start(sh("p", &script).stdin()).await;
    let requests = fill(&client, "p").await;
    still_waits(&client, &requests).await;
    let next = server.connect().await;
    next.take_over(&session).await;
    // Of these, some were written, one is waiting for room and others for their turn.
    let retries = fill(&next, "p").await;
    next.is_alive().await;
    assert!(!next.is_answered(retries[5]), "a full queue took it in");
    std::fs::write(&go, "").expect("a file");
    for retry in retries {
        let answer = next.answer(retry).await;
        assert_eq!(answer, Ok(json!({"status": "accepted"})));
    }
    assert_eq!(next.write_last("p", "").await, "accepted");
    next.sees("p", &format!("{}\n", 6 * PIECE)).await;
    next.terminate("p").await;
}

/// Something to read now and then, and never a look at the input.
const TICKS: &str = "while :; do echo tick; sleep 0.05; done";

#[tokio::test]
async fn reads_pass_writes_that_wait() {
    let (_server, client) = ready().await;
    // One that runs already, and one that is only just starting.
    client.start(sh("runs", TICKS).stdin()).await;
    client.sees("runs", "tick").await;
    for id in ["runs", "starts"] {
        if id == "starts" {
            client.request_start(sh(id, TICKS).stdin()).await;
        }
        let requests = fill(&client, id).await;
        let at_once = client.read(id, json!({"waitMs": 0})).await;
        let next = at_once["nextSeq"].as_u64().expect("a number");
        let news = json!({"afterSeq": next + 1, "waitMs": 600_000});
        let news = client.read(id, news).await;
        assert!(Story::page_bytes(&news).starts_with(b"tick"), "{news}");
        still_waits(&client, &requests).await;
        client.end(id).await;
    }
}

#[tokio::test]
async fn a_long_poll_behind_writes_that_wait_hears_of_a_takeover() {
    let server = outpost().start().await;
    let old = server.connect().await;
    let session = old.shake_hands().await["sessionId"].clone();
    old.start(sh("full", programs::NEVER_READS).stdin()).await;
    fill(&old, "full").await;
    let poll = json!({"processId": "full", "afterSeq": 999, "waitMs": 600_000});
    let poll = old.request("process/read", poll).await;
    old.is_alive().await;
    let new = server.connect().await;
    new.take_over(&session).await;
    let refused = old.answer(poll).await.unwrap_err();
    assert_eq!(
        refused.parts(),
        (-32600, "session has been resumed by another connection")
    );
    assert!(new.terminate("full").await);
}
