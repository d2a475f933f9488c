//! Tests `process/terminate` without a grace period.

use outpost_testkit::{Start, frames, programs, sh};
use serde_json::json;

use crate::{over_each_transport, ready};

#[tokio::test]
async fn running_process_is_killed_and_its_events_follow() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        for tty in [false, true] {
            let id = format!("p{tty}");
            client
                .start(sh(&id, programs::IGNORES_TERM).with("tty", tty))
                .await;
            client.wait_output(&id, "ready").await;
            assert!(client.terminate(&id).await);
            let log = client.closed(&id).await;
            assert_eq!(log.code(), 137);
        }
    })
    .await;
}

#[tokio::test]
async fn exited_process_is_reported_as_not_running() {
    let (_server, client) = ready().await;
    assert!(!client.terminate("unknown").await);
    client.run(Start::new("p", &["true"])).await;
    assert!(!client.terminate("p").await);
    assert!(
        !client
            .terminate_with("p", json!({"graceMs": 1000, "tree": false}))
            .await
    );
}

#[tokio::test]
async fn second_terminate_is_not_an_error() {
    let (_server, client) = ready().await;
    client.start(sh("p", "echo ready; exec sleep 1000")).await;
    client.wait_output("p", "ready").await;
    assert!(client.terminate("p").await);
    client.terminate("p").await;
    assert_eq!(client.closed("p").await.code(), 137);
    assert!(!client.terminate("p").await);
}

#[tokio::test]
async fn leftover_processes_survive_a_natural_exit() {
    let (server, client) = ready().await;
    client.start(sh("p", programs::HOLDS_THE_PIPE)).await;
    client.exited("p").await;
    assert!(!client.terminate("p").await);
    client.run(Start::new("q", &["true"])).await;
    assert!(
        !client.event_log("p").is_closed(),
        "a leftover process holds the pipe"
    );
    // The server and the leftover process.
    assert_eq!(server.tag().living().len(), 2);
}

#[tokio::test]
async fn tree_kills_leftover_processes() {
    let (server, client) = ready().await;
    client.start(sh("holds", programs::HOLDS_THE_PIPE)).await;
    client.start(sh("leaves", programs::FORKS_AND_LEAVES)).await;
    client.exited("holds").await;
    client.closed("leaves").await;
    server.tag().alive(3).await;
    assert!(!client.terminate_with("holds", json!({"tree": true})).await);
    assert_eq!(client.closed("holds").await.code(), 0);
    server.tag().alive(2).await;
    assert!(!client.terminate_with("leaves", json!({"tree": true})).await);
    server.tag().alive(1).await;
}

#[tokio::test]
async fn tree_of_a_running_process_changes_nothing() {
    let (server, client) = ready().await;
    client.start(sh("p", programs::LEAVES_ITS_GROUP)).await;
    client.wait_output("p", "ready").await;
    assert!(client.terminate_with("p", json!({"tree": true})).await);
    client.closed("p").await;
    server.tag().alive(1).await;
}

#[tokio::test]
async fn start_in_flight_is_cancelled_or_already_running() {
    let (server, client) = ready().await;
    for n in 0..60 {
        let id = format!("p{n}");
        let start = client
            .request_start(sh(&id, "echo started; exec sleep 1000"))
            .await;
        let terminate = client
            .request("process/terminate", json!({"processId": id}))
            .await;
        let terminated = client.response(terminate).await;
        assert_eq!(terminated, Ok(json!({"running": true})), "{id}");
        match client.response(start).await {
            Ok(_) => assert_eq!(client.closed(&id).await.code(), 137, "{id}"),
            Err(error) => {
                let expected = format!("process {id} start was cancelled");
                assert_eq!(error.parts(), (-32600, &*expected));
                assert_eq!(client.listed(&id).await, None);
                assert!(client.event_log(&id).events.is_empty());
                // No process is left, so the id is free.
                assert_eq!(client.run(Start::new(&id, &["true"])).await.code(), 0);
            }
        }
    }
    server.tag().alive(1).await;
}

#[tokio::test]
async fn cancelled_start_hides_other_errors() {
    let (_server, client) = ready().await;
    let mut cancelled = 0;
    for n in 0..60 {
        let (argv, cwd) = match n % 2 {
            0 => ("/no/such", "file:///"),
            _ => ("/bin/true", "file:///no/such"),
        };
        let (start, terminate) = (client.fresh_id(), client.fresh_id());
        let both = [
            json!({"id": start, "method": "process/start", "params": {
                "processId": "p", "argv": [argv], "cwd": cwd, "env": {},
            }}),
            json!({"id": terminate, "method": "process/terminate", "params": {"processId": "p"}}),
        ];
        // Sent together, so that the second arrives while the first is running.
        let frames = both
            .iter()
            .map(|message| frames::text(&message.to_string()));
        client.send_frames(frames.collect()).await;
        let terminated = client.response(terminate).await.expect("a response");
        let error = client.response(start).await.expect_err("it can't start");
        // Either the start was cancelled or it was over: both responses must agree.
        if terminated["running"] == true {
            let expected = (-32600, "process p start was cancelled");
            assert_eq!(error.parts(), expected, "{argv} {cwd}");
            cancelled += 1;
        } else {
            assert_eq!(error.code, -32603, "{}", error.message);
        }
    }
    assert!(cancelled > 0, "no start was cancelled while it was running");
}

#[tokio::test]
async fn terminate_before_its_start_finds_no_process() {
    let (_server, client) = ready().await;
    let terminate = client
        .request("process/terminate", json!({"processId": "p"}))
        .await;
    let start = client.request_start(sh("p", "echo fine")).await;
    assert_eq!(
        client.response(terminate).await,
        Ok(json!({"running": false}))
    );
    assert!(client.response(start).await.is_ok());
    assert_eq!(client.closed("p").await.text(), "fine\n");
}

#[tokio::test]
async fn output_before_the_end_is_kept() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "printf before; exec sleep 1000"))
        .await;
    client.wait_output("p", "before").await;
    client.terminate_and_wait("p").await;
    let read = client.read("p", json!({})).await;
    assert_eq!(outpost_testkit::EventLog::page_bytes(&read), b"before");
    assert_eq!(read["exitCode"], 137);
}
