//! Tests how much output stays readable, and for how long.

use std::time::Instant;

use outpost_testkit::deadline::DEADLINE;
use outpost_testkit::{Client, EventLog, Start, sh};
use serde_json::{Value, json};

use crate::{ready, ready_with};

/// Runs a process that writes `bytes` and waits until at most `retained` of them are kept: the
/// server may hold chunks it has just sent a moment longer.
async fn written(client: &Client, start: Start, bytes: usize, retained: usize) -> Value {
    let id = start.id().to_owned();
    let log = client.run(start).await;
    assert_eq!(log.bytes(), bytes, "an attached client gets everything");
    read_when_evicted(client, &id, retained).await
}

async fn read_when_evicted(client: &Client, id: &str, retained: usize) -> Value {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let read = client.read(id, json!({"afterSeq": 0})).await;
        let bytes = EventLog::page_bytes(&read).len();
        if bytes <= retained {
            return read;
        }
        assert!(Instant::now() < deadline, "{bytes} bytes are retained");
    }
}

/// Checks that the newest output is there and reaches back about as far as it should.
fn check_retained(read: &Value, retained: usize) {
    let seqs = EventLog::page_seqs(read);
    let bytes = EventLog::page_bytes(read).len();
    assert!(bytes <= retained, "{bytes} bytes are retained");
    assert!(
        bytes + 128 * 1024 > retained,
        "only {bytes} bytes are retained"
    );
    let first = *seqs.first().expect("a chunk");
    let expected: Vec<_> = (first..first + seqs.len() as u64).collect();
    assert_eq!(seqs, expected, "no gaps after the first");
    assert_eq!(
        read["nextSeq"],
        first + seqs.len() as u64 + 2,
        "up to the exit and the close"
    );
}

#[tokio::test]
async fn newest_mebibyte_is_retained() {
    let (_server, client) = ready().await;
    let size = 3 * 1024 * 1024;
    let start = Start::new("p", &["head", "-c", &size.to_string(), "/dev/zero"]);
    let read = written(&client, start, size, 1024 * 1024).await;
    check_retained(&read, 1024 * 1024);
    assert!(
        EventLog::page_seqs(&read)[0] > 1,
        "the gap shows in the seqs"
    );
}

#[tokio::test]
async fn servers_retain_bytes_is_the_maximum() {
    let (_server, client) = ready_with(&["--retain-bytes", "256KiB"]).await;
    let script = "head -c 1000000 /dev/zero; read x; printf the-end";
    client.start(sh("p", script).stdin()).await;
    client
        .event_log_until("p", "all of it", |log| log.bytes() == 1_000_000)
        .await;
    client.write("p", "\n", "w").await;
    client.closed("p").await;
    let read = read_when_evicted(&client, "p", 256 * 1024).await;
    check_retained(&read, 256 * 1024);
    assert!(
        EventLog::page_seqs(&read)[0] > 1,
        "the gap shows in the seqs"
    );
    assert!(EventLog::page_bytes(&read).ends_with(b"the-end"));
    // A cursor before the gap gets the retained output.
    let page = client
        .read("p", json!({"afterSeq": 1, "maxBytes": 1}))
        .await;
    assert_eq!(EventLog::page_seqs(&page)[0], EventLog::page_seqs(&read)[0]);
}

#[tokio::test]
async fn process_may_request_less_retention() {
    let (_server, client) = ready_with(&["--retain-bytes", "512KiB"]).await;
    let size = 1024 * 1024;
    let head = ["head", "-c", &size.to_string(), "/dev/zero"];
    let less = Start::new("less", &head).with("retainBytes", 200 * 1024);
    check_retained(&written(&client, less, size, 200 * 1024).await, 200 * 1024);
    let more = Start::new("more", &head).with("retainBytes", 100 * 1024 * 1024);
    check_retained(&written(&client, more, size, 512 * 1024).await, 512 * 1024);
    let most = Start::new("most", &head).with("retainBytes", u64::MAX);
    check_retained(&written(&client, most, size, 512 * 1024).await, 512 * 1024);
}

#[tokio::test]
async fn newest_chunk_is_retained_beyond_the_limit() {
    let (_server, client) = ready_with(&["--retain-bytes", "4096"]).await;
    let log = client
        .run(Start::new("p", &["head", "-c", "100000", "/dev/zero"]))
        .await;
    assert_eq!(log.bytes(), 100_000);
    let read = client.read("p", json!({"afterSeq": 0})).await;
    let last = EventLog::page_seqs(&read).last().copied();
    let expected = read["nextSeq"].as_u64().map(|next| next - 3);
    assert_eq!(last, expected, "before the exit and the close");
}

#[tokio::test]
async fn unretained_output_is_still_delivered() {
    let (_server, client) = ready().await;
    let start = sh("p", "echo hello; echo world >&2").with("retainBytes", 0);
    let log = client.run(start).await;
    assert_eq!(
        (log.stdout().as_str(), log.stderr().as_str()),
        ("hello\n", "world\n")
    );
    let read = read_when_evicted(&client, "p", 0).await;
    assert_eq!(read["nextSeq"], 5);
    assert_eq!(
        (&read["exitCode"], &read["closed"]),
        (&json!(0), &json!(true))
    );
}

#[tokio::test]
async fn closed_process_is_forgotten_after_its_time() {
    let (_server, client) = ready_with(&["--closed-retention", "200ms"]).await;
    client.start(sh("running", "read x").stdin()).await;
    client.start(sh("exited", "sleep 1000 & exit 0")).await;
    client.exited("exited").await;
    client.run(sh("closed", "echo hello")).await;
    let deadline = Instant::now() + DEADLINE;
    while client.listed("closed").await.is_some() {
        assert!(Instant::now() < deadline, "never expired");
    }
    let error = client
        .call_fails("process/read", json!({"processId": "closed"}))
        .await;
    assert_eq!(error.parts(), (-32600, "unknown process id closed"));
    assert!(!client.terminate("closed").await);
    client.signal("closed", "kill").await;
    assert_eq!(client.write("closed", "x", "w").await, "unknownProcess");
    assert!(client.listed("running").await.is_some());
    assert!(client.listed("exited").await.is_some());
    client.terminate_and_wait("running").await;
    client.terminate_with("exited", json!({"tree": true})).await;
    client.closed("exited").await;
}
