//! `process/read` that waits.

use std::time::{Duration, Instant};

use outpost_testkit::{Client, Start, Story, sh};
use serde_json::{Value, json};

use crate::{over_each_transport, ready};

/// Longer than any test waits.
const FOR_EVER: u64 = 600_000;

/// A read that waits, and does so: other requests were answered after it was sent.
async fn waiting(client: &Client, id: &str, after: u64, wait: u64) -> i64 {
    let params = json!({"processId": id, "afterSeq": after, "waitMs": wait});
    let request = client.request("process/read", params).await;
    for _ in 0..3 {
        client.is_alive().await;
        client.call("process/list", json!({})).await;
    }
    assert!(!client.is_answered(request), "it had nothing to wait for");
    request
}

async fn answer(client: &Client, request: i64) -> Value {
    client.answer(request).await.expect("a page")
}

#[tokio::test]
async fn output_exit_and_close_each_wake_it() {
    over_each_transport(async |server, client| {
        client.shake_hands().await;
        let go = server.folder().join("go");
        let script = format!(
            "(while [ ! -e {} ]; do sleep 0.02; done) & read x; echo hi; read x; exit 3",
            go.display()
        );
        client.start(sh("p", &script).stdin()).await;

        let request = waiting(client, "p", 0, FOR_EVER).await;
        client.write("p", "\n", "w1").await;
        let read = answer(client, request).await;
        assert_eq!(
            (Story::page_bytes(&read), &read["nextSeq"]),
            (b"hi\n".to_vec(), &json!(2))
        );

        let request = waiting(client, "p", 1, FOR_EVER).await;
        client.write("p", "\n", "w2").await;
        let read = answer(client, request).await;
        assert_eq!(
            (&read["exitCode"], &read["nextSeq"]),
            (&json!(3), &json!(3))
        );
        assert_eq!(
            (&read["exited"], &read["closed"]),
            (&json!(true), &json!(false))
        );

        // The exit is seen now, so only the close is left to wait for.
        let request = waiting(client, "p", 2, FOR_EVER).await;
        std::fs::write(&go, "").expect("a file");
        let read = answer(client, request).await;
        assert_eq!(
            (&read["closed"], &read["nextSeq"]),
            (&json!(true), &json!(4))
        );
        assert_eq!(read["chunks"], json!([]));
    })
    .await;
}

#[tokio::test]
async fn it_does_not_wait_when_there_is_something_to_say() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "printf x; read x; sleep 1000 & exit 0").stdin())
        .await;
    client.sees("p", "x").await;
    // Output behind the cursor.
    let read = client
        .read("p", json!({"afterSeq": 0, "waitMs": FOR_EVER}))
        .await;
    assert_eq!(Story::page_seqs(&read), [1]);
    client.write("p", "\n", "w").await;
    client.exited("p").await;
    // An exit that the caller has not seen.
    for after in [0, 1] {
        let read = client
            .read("p", json!({"afterSeq": after, "waitMs": FOR_EVER}))
            .await;
        assert_eq!(
            (&read["exited"], &read["nextSeq"]),
            (&json!(true), &json!(3))
        );
    }
    // One that it has.
    let request = waiting(&client, "p", 2, FOR_EVER).await;
    client.terminate_with("p", json!({"tree": true})).await;
    assert_eq!(answer(&client, request).await["closed"], true);
    // Closed: whatever the cursor is.
    for after in [0, 2, 3, 99] {
        let read = client
            .read("p", json!({"afterSeq": after, "waitMs": FOR_EVER}))
            .await;
        assert_eq!(read["closed"], true);
    }
}

#[tokio::test]
async fn it_gives_up_quietly_when_the_time_is_over() {
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
    client.end("p").await;
}

#[tokio::test]
async fn the_longest_wait_there_is_works() {
    let (_server, client) = ready().await;
    client.start(sh("p", "read x; echo $x").stdin()).await;
    let request = waiting(&client, "p", 0, u64::MAX).await;
    client.write("p", "hello\n", "w").await;
    let read = answer(&client, request).await;
    assert_eq!(Story::page_bytes(&read), b"hello\n");
    client.closed("p").await;
}

#[tokio::test]
async fn it_delays_nothing_not_even_the_same_process() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "read x; echo $x >&2; read x").tty())
        .await;
    let request = waiting(&client, "p", 99, FOR_EVER).await;
    client.run(Start::new("q", &["true"])).await;
    assert_eq!(client.write("p", "hello\n", "w").await, "accepted");
    client.sees("p", "hello").await;
    let size = json!({"processId": "p", "size": {"rows": 3, "cols": 4}});
    client.call("process/resize", size).await;
    client.signal("p", "continue").await;
    client.read("p", json!({"waitMs": 10})).await;
    assert!(!client.is_answered(request), "nothing has come after 99");
    client.end("p").await;
    assert_eq!(answer(&client, request).await["closed"], true);
}

#[tokio::test]
async fn many_may_wait_for_the_same_process() {
    let (_server, client) = ready().await;
    client.start(sh("p", "read x; echo $x").stdin()).await;
    let mut requests = Vec::new();
    for _ in 0..50 {
        let params = json!({"processId": "p", "waitMs": FOR_EVER});
        requests.push(client.request("process/read", params).await);
    }
    client.write("p", "hello\n", "w").await;
    for request in requests {
        let read = answer(&client, request).await;
        assert_eq!(Story::page_bytes(&read), b"hello\n");
    }
    client.closed("p").await;
}

#[tokio::test]
async fn a_cursor_in_the_future_waits_for_what_comes_after_it() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "while read x; do printf $x; done").stdin())
        .await;
    let request = waiting(&client, "p", 2, FOR_EVER).await;
    for (n, text) in ["one", "two", "three"].iter().enumerate() {
        assert!(!client.is_answered(request));
        client
            .write("p", format!("{text}\n"), &format!("w{n}"))
            .await;
        client.sees("p", text).await;
    }
    let read = answer(&client, request).await;
    assert_eq!(
        (Story::page_seqs(&read), Story::page_bytes(&read)),
        (vec![3], b"three".to_vec())
    );
    client.end("p").await;
}
