//! Tests `process/read` without waiting: pages of the retained output.

use outpost_testkit::{Client, EventLog, sh};
use serde_json::{Value, json};

use crate::{over_each_transport, ready};

/// Starts a process that writes `count` chunks, `line1` and so on, one by one.
async fn lines(client: &Client, id: &str, count: usize) {
    let script = "while read x; do printf $x; done";
    client.start(sh(id, script).stdin()).await;
    for n in 1..=count {
        client
            .write(id, format!("line{n}\n"), &format!("w{n}"))
            .await;
        client.wait_output(id, &format!("line{n}")).await;
    }
}

/// Calls `lines` and closes the process.
async fn closed_lines(client: &Client, id: &str, count: usize) {
    lines(client, id, count).await;
    client.write_last(id, "").await;
    client.closed(id).await;
}

fn summary(response: &Value) -> (Vec<u64>, u64) {
    (
        EventLog::page_seqs(response),
        response["nextSeq"].as_u64().unwrap_or_default(),
    )
}

#[tokio::test]
async fn read_returns_everything_retained() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        client
            .start(sh("p", "printf out; read x; printf err >&2; exit 3").stdin())
            .await;
        client.wait_output("p", "out").await;
        let read = client.read("p", json!({})).await;
        let expected = json!({
            "chunks": [{"seq": 1, "stream": "stdout", "chunk": "b3V0"}],
            "nextSeq": 2, "exited": false, "exitCode": null, "closed": false,
            "failure": null, "sandboxDenied": false,
        });
        assert_eq!(read, expected);
        client.write("p", "\n", "w").await;
        client.closed("p").await;
        let mut read = client.read("p", json!({})).await;
        assert!(read["usage"].take().is_object());
        let expected = json!({
            "chunks": [
                {"seq": 1, "stream": "stdout", "chunk": "b3V0"},
                {"seq": 2, "stream": "stderr", "chunk": "ZXJy"},
            ],
            "nextSeq": 5, "exited": true, "exitCode": 3, "closed": true,
            "failure": null, "sandboxDenied": false, "endedBy": "exit", "usage": null,
        });
        assert_eq!(read, expected);
    })
    .await;
}

#[tokio::test]
async fn absent_and_null_are_equal() {
    let (_server, client) = ready().await;
    closed_lines(&client, "p", 3).await;
    let absent = client.read("p", json!({})).await;
    let null = json!({"afterSeq": null, "maxBytes": null, "waitMs": null});
    assert_eq!(client.read("p", null).await, absent);
    assert_eq!(EventLog::page_bytes(&absent), b"line1line2line3");
}

#[tokio::test]
async fn only_events_after_the_cursor_are_returned() {
    let (_server, client) = ready().await;
    closed_lines(&client, "p", 5).await;
    for (after, seqs) in [
        (0, 1..6),
        (1, 2..6),
        (4, 5..6),
        (5, 6..6),
        (6, 6..6),
        (7, 6..6),
        (99, 6..6),
    ] {
        let read = client.read("p", json!({"afterSeq": after})).await;
        // Exit and close are 6 and 7.
        assert_eq!(summary(&read), (seqs.collect(), 8), "after {after}");
        assert_eq!(
            (&read["exited"], &read["closed"]),
            (&json!(true), &json!(true))
        );
    }
}

#[tokio::test]
async fn page_stops_before_its_budget() {
    let (_server, client) = ready().await;
    // Five chunks of five bytes each; exit and close are 6 and 7.
    closed_lines(&client, "p", 5).await;
    let cases = [
        (0, 4, vec![1], 2),
        (0, 5, vec![1], 2),
        (0, 9, vec![1], 2),
        (0, 10, vec![1, 2], 3),
        (0, 14, vec![1, 2], 3),
        (2, 10, vec![3, 4], 5),
        (0, 25, vec![1, 2, 3, 4, 5], 6),
        (0, 1_000_000, vec![1, 2, 3, 4, 5], 6),
        (4, 10, vec![5], 6),
        // An empty page returns the process's next seq.
        (5, 10, vec![], 8),
        (7, 10, vec![], 8),
    ];
    for (after, budget, seqs, next) in cases {
        let read = client
            .read("p", json!({"afterSeq": after, "maxBytes": budget}))
            .await;
        assert_eq!(
            summary(&read),
            (seqs, next),
            "after {after}, {budget} bytes"
        );
    }
}

#[tokio::test]
async fn page_has_at_least_one_chunk() {
    let (_server, client) = ready().await;
    closed_lines(&client, "p", 2).await;
    for budget in [0, 1] {
        let read = client.read("p", json!({"maxBytes": budget})).await;
        assert_eq!(summary(&read), (vec![1], 2), "{budget} bytes");
    }
}

#[tokio::test]
async fn next_seq_minus_one_is_the_cursor() {
    let (_server, client) = ready().await;
    closed_lines(&client, "p", 7).await;
    for budget in [json!(1), json!(5), json!(12), json!(100), json!(null)] {
        let (mut after, mut bytes, mut pages) = (0, Vec::new(), 0);
        loop {
            let read = client
                .read("p", json!({"afterSeq": after, "maxBytes": budget}))
                .await;
            bytes.extend(EventLog::page_bytes(&read));
            after = read["nextSeq"].as_u64().expect("a number") - 1;
            pages += 1;
            if read["closed"] == true && read["chunks"] == json!([]) {
                break;
            }
            assert!(pages < 20, "{budget}");
        }
        assert_eq!(
            String::from_utf8_lossy(&bytes),
            "line1line2line3line4line5line6line7"
        );
    }
}

#[tokio::test]
async fn reading_removes_nothing() {
    let (_server, client) = ready().await;
    lines(&client, "p", 3).await;
    let first = client.read("p", json!({})).await;
    assert_eq!(client.read("p", json!({})).await, first);
    assert_eq!(
        client.event_log("p").text(),
        "line1line2line3",
        "it is pushed as well"
    );
    client.terminate_and_wait("p").await;
}

#[tokio::test]
async fn unknown_process_is_an_error() {
    let (_server, client) = ready().await;
    for params in [
        json!({"processId": "ghost"}),
        json!({"processId": "ghost", "waitMs": 20_000}),
    ] {
        let error = client.call_fails("process/read", params).await;
        assert_eq!(error.parts(), (-32600, "unknown process id ghost"));
    }
}

#[tokio::test]
async fn page_fits_a_message() {
    let (_server, client) = crate::ready_with(&["--retain-bytes", "80MiB"]).await;
    client.only_count("p");
    let written = 70_000_000;
    client
        .start(sh("p", &format!("head -c {written} /dev/zero")))
        .await;
    client.wait_count("p", written).await;
    let (mut after, mut bytes, mut pages) = (0, 0, 0);
    loop {
        let id = client
            .request(
                "process/read",
                json!({"processId": "p", "afterSeq": after, "waitMs": 20_000}),
            )
            .await;
        let response = client.response_message(id).await;
        assert!(response.to_string().len() <= 64 * 1024 * 1024);
        let read = &response["result"];
        bytes += EventLog::page_bytes(read).len();
        after = read["nextSeq"].as_u64().expect("a number") - 1;
        pages += 1;
        if read["closed"] == true && read["chunks"] == json!([]) {
            break;
        }
        assert!(pages < 20);
    }
    assert_eq!(bytes, written);
}
