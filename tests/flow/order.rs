//! Tests that requests for one process take effect in the order they were sent.

use std::collections::{HashMap, HashSet};

use outpost_testkit::{Client, EventLog, Start, base64, sh};
use serde_json::json;

use crate::{over_each_transport, ready, unsandboxed_outpost};

#[tokio::test]
async fn writes_and_reads_wait_for_the_start() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        for n in 0..20 {
            let id = format!("p{n}");
            let start = client
                .request_start(Start::new(&id, &["cat"]).stdin())
                .await;
            let one = client.request_write(&id, "one\n", "w1").await;
            let two = client.request_write(&id, "two\n", "w2").await;
            let read = json!({"processId": id, "waitMs": 20_000});
            let read = client.request("process/read", read).await;
            let last = json!({"processId": id, "chunk": "", "closeStdin": true});
            let last = client.request("process/write", last).await;

            assert!(client.response(start).await.is_ok());
            for write in [one, two, last] {
                assert_eq!(
                    client.response(write).await,
                    Ok(json!({"status": "accepted"}))
                );
            }
            let read = client.response(read).await.expect("a page");
            assert!(EventLog::page_bytes(&read).starts_with(b"one\n"), "{read}");
            assert_eq!(client.closed(&id).await.text(), "one\ntwo\n");
        }
    })
    .await;
}

#[tokio::test]
async fn signal_waits_for_the_start() {
    let (_server, client) = ready().await;
    for n in 0..20 {
        let id = format!("p{n}");
        let start = client.request_start(sh(&id, "exec sleep 1000")).await;
        let signal = json!({"processId": id, "signal": "kill"});
        let signal = client.request("process/signal", signal).await;
        assert!(client.response(start).await.is_ok());
        assert_eq!(client.response(signal).await, Ok(json!({})));
        assert_eq!(client.closed(&id).await.code(), 137);
    }
}

#[tokio::test]
async fn resize_waits_for_the_start() {
    let (_server, client) = ready().await;
    for n in 0..60 {
        let id = format!("p{n}");
        let script = "read x; stty size; echo got $x";
        let start = client.request_start(sh(&id, script).tty()).await;
        let resize = json!({"processId": id, "size": {"rows": 50, "cols": 100}});
        let resize = client.request("process/resize", resize).await;
        let write = client.request_write(&id, "hi\n", "w").await;
        assert!(client.response(start).await.is_ok());
        assert_eq!(client.response(resize).await, Ok(json!({})));
        assert!(client.response(write).await.is_ok());
        let log = client.closed(&id).await;
        assert!(
            log.text().ends_with("50 100\r\ngot hi\r\n"),
            "{}",
            log.text()
        );
    }
}

#[tokio::test]
async fn requests_after_a_failed_start_find_no_process() {
    let (_server, client) = ready().await;
    for n in 0..20 {
        let id = format!("p{n}");
        let start = client
            .request_start(Start::new(&id, &["/no/such/program"]))
            .await;
        let write = client.request_write(&id, "x", "w").await;
        let read = client
            .request("process/read", json!({"processId": id, "waitMs": 20_000}))
            .await;
        let signal = json!({"processId": id, "signal": "kill"});
        let signal = client.request("process/signal", signal).await;
        let again = client.request_start(Start::new(&id, &["true"])).await;

        assert_eq!(client.response(start).await.unwrap_err().code, -32603);
        assert_eq!(
            client.response(write).await,
            Ok(json!({"status": "unknownProcess"}))
        );
        let error = client.response(read).await.unwrap_err();
        let expected = format!("unknown process id {id}");
        assert_eq!(error.parts(), (-32600, &*expected));
        assert_eq!(client.response(signal).await, Ok(json!({})));
        assert!(
            client.response(again).await.is_ok(),
            "the id is free for the next request"
        );
        client.closed(&id).await;
    }
}

#[tokio::test]
async fn read_after_a_write_sees_a_later_state() {
    let (_server, client) = ready().await;
    client.start(Start::new("p", &["cat"]).stdin()).await;
    let mut requests = Vec::new();
    for n in 0..50 {
        let chunk = base64(format!("{n}\n"));
        let write = json!({"processId": "p", "chunk": chunk, "closeStdin": n == 49});
        requests.push(client.request("process/write", write).await);
        let read = json!({"processId": "p", "waitMs": 0});
        requests.push(client.request("process/read", read).await);
    }
    let mut seen = 0;
    for request in requests {
        let response = client.response(request).await.expect("a response");
        if response.get("chunks").is_some() {
            let bytes = EventLog::page_bytes(&response).len();
            assert!(bytes >= seen, "a later read returned less");
            seen = bytes;
        }
    }
    client.closed("p").await;
}

#[tokio::test]
async fn processes_do_not_wait_for_each_other() {
    let (_server, client) = ready().await;
    client.start(sh("slow", "read x; echo done").stdin()).await;
    let read = json!({"processId": "slow", "waitMs": 600_000});
    let waits = client.request("process/read", read).await;
    let mut starts = Vec::new();
    for n in 0..30 {
        starts.push(
            client
                .request_start(Start::new(&format!("p{n}"), &["true"]))
                .await,
        );
    }
    for (n, start) in starts.into_iter().enumerate() {
        assert!(client.response(start).await.is_ok());
        client.closed(&format!("p{n}")).await;
    }
    assert!(!client.has_response(waits));
    client.write("slow", "\n", "w").await;
    assert!(client.response(waits).await.is_ok());
}

/// Lists events that arrived before the response to their process's start.
fn events_before_responses(client: &Client, requests: &HashMap<String, i64>) -> Vec<String> {
    let mut answered = HashSet::new();
    let mut early = Vec::new();
    for message in client.received() {
        if let Some(id) = message["id"].as_i64() {
            answered.insert(id);
            continue;
        }
        let params = &message["params"];
        let name = params["processId"].as_str();
        let name = name.or(params["processHandle"].as_str());
        let name = name.unwrap_or_else(|| panic!("no process id: {message}"));
        if !answered.contains(&requests[name]) {
            early.push(format!("{} of {name}", message["method"]));
        }
    }
    early
}

#[tokio::test]
async fn no_event_precedes_the_start_response() {
    let server = unsandboxed_outpost().start().await;
    let kinds = [
        ("process/start", "process/closed"),
        ("process/spawn", "process/exited"),
        ("command/exec", "command/exec/exited"),
    ];
    // Repeated, because the race needs both messages while the output buffer is being filled.
    for (method, end) in kinds.into_iter().cycle().take(6) {
        let client = server.connect().await;
        let hello = json!({"clientInfo": {"name": "t", "version": "1"},
            "capabilities": {"experimentalApi": true}});
        client.call("initialize", hello).await;
        client.notify("initialized", json!({})).await;
        let mut requests = HashMap::new();
        for n in 0..300 {
            let name = format!("p{n}");
            let params = match method {
                "process/spawn" => json!({"processHandle": name, "command": ["echo", "x"],
                    "cwd": "/", "streamStdoutStderr": true}),
                "command/exec" => json!({"processId": name, "argv": ["echo", "x"],
                    "cwd": "/", "env": {}, "tty": false}),
                _ => json!({"processId": name, "argv": ["echo", "x"], "cwd": "file:///",
                    "env": {}}),
            };
            requests.insert(name, client.request(method, params).await);
        }
        client
            .until("all exits", |seen| {
                let ends = seen.messages.iter().filter(|m| m["method"] == end);
                (ends.count() == requests.len()).then_some(())
            })
            .await;
        assert_eq!(
            events_before_responses(&client, &requests),
            [""; 0],
            "{method}"
        );
    }
}
