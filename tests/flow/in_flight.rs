//! At most 1,024 requests of a connection are in flight.

use outpost_testkit::{Start, base64, file_uri, programs, sh};
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

#[tokio::test]
async fn thousands_of_quick_requests_in_one_go_are_all_answered() {
    let (_server, client) = ready().await;
    let mut requests = Vec::new();
    for _ in 0..5000 {
        requests.push(client.request("process/list", json!({})).await);
    }
    for request in requests {
        assert_eq!(client.answer(request).await, Ok(json!({"processes": []})));
    }
}

#[tokio::test]
async fn a_large_request_waits_for_the_room_that_others_have() {
    let (server, client) = ready().await;
    let go = server.folder().join("go");
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
    // The first one fills the queue, and the others hold what room there is.
    assert!(client.answer(requests[0]).await.is_ok());
    let file = server.folder().join("file");
    let write = json!({"path": file_uri(&file), "dataBase64": base64(&piece)});
    let write = client.request("fs/writeFile", write).await;
    let last = json!({"processId": "p", "closeStdin": true});
    requests.push(client.request("process/write", last).await);
    std::fs::write(&go, "").expect("a file");
    assert_eq!(client.answer(write).await, Ok(json!({})));
    for request in requests {
        let answer = client.answer(request).await;
        assert_eq!(answer, Ok(json!({"status": "accepted"})));
    }
    let counted = client.closed("p").await.text();
    assert_eq!(counted.trim(), (5 * piece.len()).to_string());
}

#[tokio::test]
async fn writes_to_a_child_that_never_reads_do_not_lock_control_out() {
    let (_server, client) = ready().await;
    client
        .start(sh("full", programs::NEVER_READS).stdin())
        .await;
    let mut writes = Vec::new();
    for n in 0..8 {
        let bytes = vec![b'x'; 10 * 1024 * 1024];
        writes.push(client.request_write("full", bytes, &format!("w{n}")).await);
    }
    // Nothing of it moves, so some of them are told to come back later.
    let last = client.answer(*writes.last().expect("a write")).await;
    assert_eq!(
        last.unwrap_err().parts(),
        (-32001, "Server overloaded; retry later.")
    );
    client.run(Start::new("other", &["true"])).await;
    assert!(client.terminate("full").await);
    let mut told = Vec::new();
    for write in &writes[..writes.len() - 1] {
        told.push(client.answer(*write).await);
    }
    assert_eq!(told[0], Ok(json!({"status": "accepted"})));
    assert!(
        told.contains(&Ok(json!({"status": "stdinClosed"}))),
        "{told:?}"
    );
    client.closed("full").await;
}
