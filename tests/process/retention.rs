//! How much of a process stays readable, and for how long.

use std::time::Instant;

use outpost_testkit::patience::PATIENCE;
use outpost_testkit::{Client, Start, Story, sh};
use serde_json::{Value, json};

use crate::{ready, ready_with};

/// A process that has written so many bytes, of which no more than so many are retained. What the
/// server has sent a moment ago it may hold a moment longer.
async fn written(client: &Client, start: Start, bytes: usize, retained: usize) -> Value {
    let id = start.id().to_owned();
    let story = client.run(start).await;
    assert_eq!(story.bytes(), bytes, "an attached client gets everything");
    read_when_evicted(client, &id, retained).await
}

async fn read_when_evicted(client: &Client, id: &str, retained: usize) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let read = client.read(id, json!({"afterSeq": 0})).await;
        let bytes = Story::page_bytes(&read).len();
        if bytes <= retained {
            return read;
        }
        assert!(Instant::now() < deadline, "{bytes} bytes are retained");
    }
}

/// The newest output is there and reaches back about as far as it should.
fn reaches_back(read: &Value, retained: usize) {
    let seqs = Story::page_seqs(read);
    let bytes = Story::page_bytes(read).len();
    assert!(bytes <= retained, "{bytes} bytes are retained");
    assert!(
        bytes + 128 * 1024 > retained,
        "only {bytes} bytes are retained"
    );
    let first = *seqs.first().expect("a chunk");
    let expected: Vec<_> = (first..first + seqs.len() as u64).collect();
    assert_eq!(seqs, expected, "no holes after the first");
    assert_eq!(
        read["nextSeq"],
        first + seqs.len() as u64 + 2,
        "up to the exit and the close"
    );
}

#[tokio::test]
async fn the_newest_mebibyte_is_retained() {
    let (_server, client) = ready().await;
    let size = 3 * 1024 * 1024;
    let start = Start::new("p", &["head", "-c", &size.to_string(), "/dev/zero"]);
    let read = written(&client, start, size, 1024 * 1024).await;
    reaches_back(&read, 1024 * 1024);
    assert!(Story::page_seqs(&read)[0] > 1, "the hole shows as a jump");
}

#[tokio::test]
async fn retain_bytes_of_the_server_bounds_it() {
    let (_server, client) = ready_with(&["--retain-bytes", "256KiB"]).await;
    let script = "head -c 1000000 /dev/zero; read x; printf the-end";
    client.start(sh("p", script).stdin()).await;
    client
        .story_until("p", "all of it", |story| story.bytes() == 1_000_000)
        .await;
    client.write("p", "\n", "w").await;
    client.closed("p").await;
    let read = read_when_evicted(&client, "p", 256 * 1024).await;
    reaches_back(&read, 256 * 1024);
    assert!(Story::page_seqs(&read)[0] > 1, "the hole shows as a jump");
    assert!(Story::page_bytes(&read).ends_with(b"the-end"));
    // A cursor from before the hole gets what there is.
    let page = client
        .read("p", json!({"afterSeq": 1, "maxBytes": 1}))
        .await;
    assert_eq!(Story::page_seqs(&page)[0], Story::page_seqs(&read)[0]);
}

#[tokio::test]
async fn a_process_may_have_less_retained_but_not_more() {
    let (_server, client) = ready_with(&["--retain-bytes", "512KiB"]).await;
    let size = 1024 * 1024;
    let head = ["head", "-c", &size.to_string(), "/dev/zero"];
    let less = Start::new("less", &head).with("retainBytes", 200 * 1024);
    reaches_back(&written(&client, less, size, 200 * 1024).await, 200 * 1024);
    let more = Start::new("more", &head).with("retainBytes", 100 * 1024 * 1024);
    reaches_back(&written(&client, more, size, 512 * 1024).await, 512 * 1024);
    let most = Start::new("most", &head).with("retainBytes", u64::MAX);
    reaches_back(&written(&client, most, size, 512 * 1024).await, 512 * 1024);
}

#[tokio::test]
async fn the_newest_output_is_retained_however_little_that_is() {
    let (_server, client) = ready_with(&["--retain-bytes", "4096"]).await;
    let story = client
        .run(Start::new("p", &["head", "-c", "100000", "/dev/zero"]))
        .await;
    assert_eq!(story.bytes(), 100_000);
    let read = client.read("p", json!({"afterSeq": 0})).await;
    let last = Story::page_seqs(&read).last().copied();
    let expected = read["nextSeq"].as_u64().map(|next| next - 3);
    assert_eq!(last, expected, "before the exit and the close");
}

#[tokio::test]
async fn nothing_retained_is_still_delivered() {
    let (_server, client) = ready().await;
    let start = sh("p", "echo hello; echo world >&2").with("retainBytes", 0);
    let story = client.run(start).await;
    assert_eq!(
        (story.stdout().as_str(), story.stderr().as_str()),
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
async fn a_closed_process_is_forgotten_when_its_time_is_over_and_no_other_is() {
    let (_server, client) = ready_with(&["--closed-retention", "200ms"]).await;
    client.start(sh("running", "read x").stdin()).await;
    client.start(sh("exited", "sleep 1000 & exit 0")).await;
    client.exited("exited").await;
    client.run(sh("closed", "echo hello")).await;
    let deadline = Instant::now() + PATIENCE;
    while client.listed("closed").await.is_some() {
        assert!(Instant::now() < deadline, "never forgotten");
    }
    let error = client
        .fails("process/read", json!({"processId": "closed"}))
        .await;
    assert_eq!(error.parts(), (-32600, "unknown process id closed"));
    assert!(!client.terminate("closed").await);
    client.signal("closed", "kill").await;
    assert_eq!(client.write("closed", "x", "w").await, "unknownProcess");
    assert!(client.listed("running").await.is_some());
    assert!(client.listed("exited").await.is_some());
    client.end("running").await;
    client.terminate_with("exited", json!({"tree": true})).await;
    client.closed("exited").await;
}
