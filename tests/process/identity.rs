//! Tests `processId`, which the client chooses.

use outpost_testkit::{deadline, sh};
use serde_json::json;

use crate::{ready, ready_with};

#[tokio::test]
async fn id_of_a_running_process_is_rejected() {
    let (_server, client) = ready().await;
    client.start(sh("dup", "read x; echo first").stdin()).await;
    let error = client.start_fails(sh("dup", "echo second")).await;
    assert_eq!(error.parts(), (-32600, "process dup already exists"));
    client.write("dup", "\n", "w").await;
    assert_eq!(client.closed("dup").await.text(), "first\n");
}

#[tokio::test]
async fn id_of_a_retained_closed_process_is_rejected() {
    let (_server, client) = ready().await;
    client.run(sh("dup", "echo first")).await;
    let error = client.start_fails(sh("dup", "echo second")).await;
    assert_eq!(error.parts(), (-32600, "process dup already exists"));
    let read = client.read("dup", json!({})).await;
    assert_eq!(read["closed"], true);
}

#[tokio::test]
async fn id_is_free_after_eviction() {
    let (_server, client) = ready_with(&["--closed-retention", "100ms"]).await;
    client.run(sh("dup", "echo first")).await;
    let deadline = std::time::Instant::now() + deadline::DEADLINE;
    while client.listed("dup").await.is_some() {
        assert!(std::time::Instant::now() < deadline, "never evicted");
    }
    let error = client
        .call_fails("process/read", json!({"processId": "dup"}))
        .await;
    assert_eq!(error.parts(), (-32600, "unknown process id dup"));
    client.start(sh("dup", "echo second; read x").stdin()).await;
    client
        .until("the second exit", |seen| {
            seen.event_logs
                .get("dup")
                .filter(|log| log.text().contains("second"))
                .map(drop)
        })
        .await;
    let numbers: Vec<_> = client
        .event_log("dup")
        .events
        .iter()
        .map(|event| event.seq())
        .collect();
    assert_eq!(numbers, [1, 2, 3, 1], "the second one counts from 1 again");
    client.terminate("dup").await;
}

#[tokio::test]
async fn first_of_two_starts_gets_the_id() {
    let (_server, client) = ready().await;
    for n in 0..10 {
        let id = format!("p{n}");
        let first = client.request_start(sh(&id, "echo first")).await;
        let second = client.request_start(sh(&id, "echo second")).await;
        let error = client.response(second).await.unwrap_err();
        let expected = format!("process {id} already exists");
        assert_eq!(error.parts(), (-32600, &*expected));
        assert!(client.response(first).await.is_ok());
        assert_eq!(client.closed(&id).await.text(), "first\n");
    }
}

#[tokio::test]
async fn id_has_1_to_256_bytes() {
    let (_server, client) = ready().await;
    let long = "x".repeat(256);
    let wide = "ü".repeat(128);
    let ids = [
        " ",
        "a/b",
        "..",
        "\n",
        "\u{0}",
        "ünï ☃ \"quoted\"",
        "-1",
        &long,
        &wide,
    ];
    for id in ids {
        let log = client.run(sh(id, "echo hello")).await;
        assert_eq!(log.text(), "hello\n", "{id:?}");
        assert!(client.listed(id).await.is_some(), "{id:?}");
    }
    for id in ["", &"x".repeat(257), &"ü".repeat(129)] {
        let error = client.start_fails(sh(id, "echo hello")).await;
        assert_eq!(error.code, -32602, "{id:?}");
    }
    let list = client.call("process/list", json!({})).await;
    assert_eq!(list["processes"].as_array().map(Vec::len), Some(ids.len()));
}
