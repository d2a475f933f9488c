//! At most 1,024 requests of a connection are in flight.

use outpost_testkit::{Start, sh};
use serde_json::json;

use crate::ready;

#[tokio::test]
async fn the_1025th_request_is_refused_while_control_gets_through() {
    let (server, client) = ready().await;
    client
        .start(
            sh(
                "p",
                "trap 'echo caught' USR1; echo ready; while :; do sleep 0.02; done",
            )
            .tty(),
        )
        .await;
    client.sees("p", "ready").await;
    let read = json!({"processId": "p", "afterSeq": 999_999, "waitMs": 600_000});
    let mut waiting = Vec::new();
    for _ in 0..1024 {
        waiting.push(client.request("process/read", read.clone()).await);
    }
    for (method, params) in [
        ("process/read", read.clone()),
        ("process/list", json!({})),
        (
            "process/write",
            json!({"processId": "p", "chunk": "", "writeId": "w"}),
        ),
        (
            "process/start",
            json!({"processId": "q", "argv": ["true"], "cwd": "file:///", "env": {}}),
        ),
    ] {
        let error = client.fails(method, params).await;
        assert_eq!(
            error.parts(),
            (-32001, "Server overloaded; retry later."),
            "{method}"
        );
    }
    // Not one of those that were let in was refused or answered.
    assert!(waiting.iter().all(|request| !client.is_answered(*request)));

    client.is_alive().await;
    client.call("environment/info", json!({})).await;
    client.signal("p", "user1").await;
    client.sees("p", "caught").await;
    let size = json!({"processId": "p", "size": {"rows": 7, "cols": 8}});
    assert_eq!(client.call("process/resize", size).await, json!({}));
    // Another connection has places of its own.
    let other = server.client().await;
    other.run(Start::new("q", &["true"])).await;

    assert!(client.terminate("p").await);
    client.closed("p").await;
    for request in waiting {
        let read = client.answer(request).await.expect("a page");
        assert_eq!(read["closed"], true);
    }
    // The places are free again, and the id of the refused start was never taken.
    client.run(Start::new("q", &["true"])).await;
}

#[tokio::test]
async fn an_answer_frees_a_place() {
    let (_server, client) = ready().await;
    client.start(sh("p", "read x").stdin()).await;
    let read = json!({"processId": "p", "waitMs": 600_000});
    for _ in 0..1023 {
        client.request("process/read", read.clone()).await;
    }
    for _ in 0..200 {
        client.call("process/list", json!({})).await;
    }
    client.end("p").await;
}
