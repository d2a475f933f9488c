//! Tests the limits of requests in flight: 1,024 per connection, and a byte budget.

use outpost_testkit::{Start, base64, file_uri, programs, sh};
use serde_json::json;

use crate::ready;

#[tokio::test]
async fn request_1025_is_rejected_and_control_gets_through() {
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
    client.wait_output("p", "ready").await;
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
        let error = client.call_fails(method, params).await;
        assert_eq!(
            error.parts(),
            (-32001, "Server overloaded; retry later."),
            "{method}"
        );
    }
    // None of the admitted requests was rejected or has a response.
    assert!(waiting.iter().all(|request| !client.has_response(*request)));

    client.check_alive().await;
    client.call("environment/info", json!({})).await;
    client.signal("p", "user1").await;
    client.wait_output("p", "caught").await;
    let size = json!({"processId": "p", "size": {"rows": 7, "cols": 8}});
    assert_eq!(client.call("process/resize", size).await, json!({}));
    // Another connection has its own limit.
    let other = server.client().await;
    other.run(Start::new("q", &["true"])).await;

    assert!(client.terminate("p").await);
    client.closed("p").await;
    for request in waiting {
        let read = client.response(request).await.expect("a page");
        assert_eq!(read["closed"], true);
    }
    // The slots are free again, and the id of the rejected start was not taken.
    client.run(Start::new("q", &["true"])).await;
}

#[tokio::test]
async fn response_frees_a_slot() {
    let (_server, client) = ready().await;
    client.start(sh("p", "read x").stdin()).await;
    let read = json!({"processId": "p", "waitMs": 600_000});
    for _ in 0..1023 {
        client.request("process/read", read.clone()).await;
    }
    for _ in 0..200 {
        client.call("process/list", json!({})).await;
    }
    client.terminate_and_wait("p").await;
}

#[tokio::test]
async fn thousands_of_pipelined_requests_are_answered() {
    let (_server, client) = ready().await;
    let mut requests = Vec::new();
    for _ in 0..5000 {
        requests.push(client.request("process/list", json!({})).await);
    }
    for request in requests {
        assert_eq!(client.response(request).await, Ok(json!({"processes": []})));
    }
}

#[tokio::test]
async fn large_request_waits_for_the_byte_budget() {
    let (server, client) = ready().await;
    let go = server.dir().join("go");
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.02; done; wc -c",
        go.display()
    );
    client.start(sh("p", &script).stdin()).await;
    let piece = vec![b'x'; 10 * 1024 * 1024];
    let mut requests = Vec::new();
    for n in 0..5 {
        requests.push(client.request_write("p", &piece, &format!("w{n}")).await);
    }
    // The first write fills the stdin queue, and the others use up the byte budget.
    assert!(client.response(requests[0]).await.is_ok());
    let file = server.dir().join("file");
    let write = json!({"path": file_uri(&file), "dataBase64": base64(&piece)});
    let write = client.request("fs/writeFile", write).await;
    let last = json!({"processId": "p", "closeStdin": true});
    requests.push(client.request("process/write", last).await);
    std::fs::write(&go, "").expect("a file");
    assert_eq!(client.response(write).await, Ok(json!({})));
    for request in requests {
        let response = client.response(request).await;
        assert_eq!(response, Ok(json!({"status": "accepted"})));
    }
    let counted = client.closed("p").await.text();
    assert_eq!(counted.trim(), (5 * piece.len()).to_string());
}

#[tokio::test]
async fn writes_to_a_blocked_child_do_not_block_control() {
    let (_server, client) = ready().await;
    client
        .start(sh("full", programs::NEVER_READS).stdin())
        .await;
    let mut writes = Vec::new();
    for n in 0..8 {
        let bytes = vec![b'x'; 10 * 1024 * 1024];
        writes.push(client.request_write("full", bytes, &format!("w{n}")).await);
    }
    // No request completes, so some of them are rejected.
    let last = client.response(*writes.last().expect("a write")).await;
    assert_eq!(
        last.unwrap_err().parts(),
        (-32001, "Server overloaded; retry later.")
    );
    client.run(Start::new("other", &["true"])).await;
    assert!(client.terminate("full").await);
    let mut responses = Vec::new();
    for write in &writes[..writes.len() - 1] {
        responses.push(client.response(*write).await);
    }
    assert_eq!(responses[0], Ok(json!({"status": "accepted"})));
    assert!(
        responses.contains(&Ok(json!({"status": "stdinClosed"}))),
        "{responses:?}"
    );
    client.closed("full").await;
}
