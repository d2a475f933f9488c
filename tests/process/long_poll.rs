//! Tests `process/read` with `waitMs`.

use std::time::{Duration, Instant};

use outpost_testkit::{Client, EventLog, Start, sh};
use serde_json::{Value, json};

use crate::{over_each_transport, ready};

/// Longer than any test waits.
const FOREVER: u64 = 600_000;

/// Sends a read and checks that it blocks: later requests get their responses first.
async fn start_blocked_read(client: &Client, id: &str, after: u64, wait: u64) -> i64 {
    let params = json!({"processId": id, "afterSeq": after, "waitMs": wait});
    let request = client.request("process/read", params).await;
    for _ in 0..3 {
        client.check_alive().await;
        client.call("process/list", json!({})).await;
    }
    assert!(!client.has_response(request), "the read did not block");
    request
}

async fn response(client: &Client, request: i64) -> Value {
    client.response(request).await.expect("a page")
}

#[tokio::test]
async fn output_exit_and_close_wake_it() {
    over_each_transport(async |server, client| {
        client.handshake().await;
        let go = server.dir().join("go");
        let script = format!(
            "(while [ ! -e {} ]; do sleep 0.02; done) & read x; echo hi; read x; exit 3",
            go.display()
        );
        client.start(sh("p", &script).stdin()).await;

        let request = start_blocked_read(client, "p", 0, FOREVER).await;
        client.write("p", "\n", "w1").await;
        let read = response(client, request).await;
        assert_eq!(
            (EventLog::page_bytes(&read), &read["nextSeq"]),
            (b"hi\n".to_vec(), &json!(2))
        );

        let request = start_blocked_read(client, "p", 1, FOREVER).await;
        client.write("p", "\n", "w2").await;
        let read = response(client, request).await;
        assert_eq!(
            (&read["exitCode"], &read["nextSeq"]),
            (&json!(3), &json!(3))
        );
        assert_eq!(
            (&read["exited"], &read["closed"]),
            (&json!(true), &json!(false))
        );

        // The cursor is past the exit, so the read waits for the close.
        let request = start_blocked_read(client, "p", 2, FOREVER).await;
        std::fs::write(&go, "").expect("a file");
        let read = response(client, request).await;
        assert_eq!(
            (&read["closed"], &read["nextSeq"]),
            (&json!(true), &json!(4))
        );
        assert_eq!(read["chunks"], json!([]));
    })
    .await;
}

#[tokio::test]
async fn pending_events_are_returned_at_once() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "printf x; read x; sleep 1000 & exit 0").stdin())
        .await;
    client.wait_output("p", "x").await;
    // Output after the cursor.
    let read = client
        .read("p", json!({"afterSeq": 0, "waitMs": FOREVER}))
        .await;
    assert_eq!(EventLog::page_seqs(&read), [1]);
    client.write("p", "\n", "w").await;
    client.exited("p").await;
    // An exit after the cursor.
    for after in [0, 1] {
        let read = client
            .read("p", json!({"afterSeq": after, "waitMs": FOREVER}))
            .await;
        assert_eq!(
            (&read["exited"], &read["nextSeq"]),
            (&json!(true), &json!(3))
        );
    }
    // An exit before the cursor.
    let request = start_blocked_read(&client, "p", 2, FOREVER).await;
    client.terminate_with("p", json!({"tree": true})).await;
    assert_eq!(response(&client, request).await["closed"], true);
    // A closed process, with any cursor.
    for after in [0, 2, 3, 99] {
        let read = client
            .read("p", json!({"afterSeq": after, "waitMs": FOREVER}))
            .await;
        assert_eq!(read["closed"], true);
    }
}

#[tokio::test]
async fn timeout_returns_an_empty_page() {
    let (_server, client) = ready().await;
    client.start(sh("p", "read x").stdin()).await;
    let start = Instant::now();
    let read = client.read("p", json!({"waitMs": 300})).await;
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(290), "{took:?}");
    let expected = json!({
        "chunks": [], "nextSeq": 1, "exited": false, "exitCode": null, "closed": false,
        "failure": null, "sandboxDenied": false,
    });
    assert_eq!(read, expected);
    client.terminate_and_wait("p").await;
}

#[tokio::test]
async fn longest_wait_works() {
    let (_server, client) = ready().await;
    client.start(sh("p", "read x; echo $x").stdin()).await;
    let request = start_blocked_read(&client, "p", 0, u64::MAX).await;
    client.write("p", "hello\n", "w").await;
    let read = response(&client, request).await;
    assert_eq!(EventLog::page_bytes(&read), b"hello\n");
    client.closed("p").await;
}

#[tokio::test]
async fn long_poll_does_not_delay_other_requests() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "read x; echo $x >&2; read x").tty())
        .await;
    let request = start_blocked_read(&client, "p", 99, FOREVER).await;
    client.run(Start::new("q", &["true"])).await;
    assert_eq!(client.write("p", "hello\n", "w").await, "accepted");
    client.wait_output("p", "hello").await;
    let size = json!({"processId": "p", "size": {"rows": 3, "cols": 4}});
    client.call("process/resize", size).await;
    client.signal("p", "continue").await;
    client.read("p", json!({"waitMs": 10})).await;
    assert!(!client.has_response(request), "nothing has come after 99");
    client.terminate_and_wait("p").await;
    assert_eq!(response(&client, request).await["closed"], true);
}

#[tokio::test]
async fn many_may_wait_for_one_process() {
    let (_server, client) = ready().await;
    client.start(sh("p", "read x; echo $x").stdin()).await;
    let mut requests = Vec::new();
    for _ in 0..50 {
        let params = json!({"processId": "p", "waitMs": FOREVER});
        requests.push(client.request("process/read", params).await);
    }
    client.write("p", "hello\n", "w").await;
    for request in requests {
        let read = response(&client, request).await;
        assert_eq!(EventLog::page_bytes(&read), b"hello\n");
    }
    client.closed("p").await;
}

#[tokio::test]
async fn future_cursor_waits_for_later_events() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "while read x; do printf $x; done").stdin())
        .await;
    let request = start_blocked_read(&client, "p", 2, FOREVER).await;
    for (n, text) in ["one", "two", "three"].iter().enumerate() {
        assert!(!client.has_response(request));
        client
            .write("p", format!("{text}\n"), &format!("w{n}"))
            .await;
        client.wait_output("p", text).await;
    }
    let read = response(&client, request).await;
    assert_eq!(
        (EventLog::page_seqs(&read), EventLog::page_bytes(&read)),
        (vec![3], b"three".to_vec())
    );
    client.terminate_and_wait("p").await;
}
