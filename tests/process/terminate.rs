//! `process/terminate`: the end at once.

use outpost_testkit::{Start, frames, programs, sh};
use serde_json::json;

use crate::{over_each_transport, ready};

#[tokio::test]
async fn a_running_process_is_killed_and_its_events_follow() {
    over_each_transport(async |_, client| {
        client.shake_hands().await;
        for tty in [false, true] {
            let id = format!("p{tty}");
            client
                .start(sh(&id, programs::IGNORES_TERM).with("tty", tty))
                .await;
            client.sees(&id, "ready").await;
            assert!(client.terminate(&id).await);
            let story = client.closed(&id).await;
            assert_eq!(story.code(), 137);
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_not_running_is_told_so() {
    let (_server, client) = ready().await;
    assert!(!client.terminate("nobody").await);
    client.run(Start::new("p", &["true"])).await;
    assert!(!client.terminate("p").await);
    assert!(
        !client
            .terminate_with("p", json!({"graceMs": 1000, "tree": false}))
            .await
    );
}

#[tokio::test]
async fn a_second_terminate_is_no_error() {
    let (_server, client) = ready().await;
    client.start(sh("p", "echo ready; exec sleep 1000")).await;
    client.sees("p", "ready").await;
    assert!(client.terminate("p").await);
    client.terminate("p").await;
    assert_eq!(client.closed("p").await.code(), 137);
    assert!(!client.terminate("p").await);
}

#[tokio::test]
async fn after_a_natural_exit_nothing_happens_to_what_was_left() {
    let (server, client) = ready().await;
    client.start(sh("p", programs::HOLDS_THE_PIPE)).await;
    client.exited("p").await;
    assert!(!client.terminate("p").await);
    client.run(Start::new("q", &["true"])).await;
    assert!(
        !client.story("p").is_closed(),
        "what it left holds the pipe"
    );
    // The server and what was left.
    assert_eq!(server.mark().living().len(), 2);
}

#[tokio::test]
async fn tree_kills_what_was_left() {
    let (server, client) = ready().await;
    client.start(sh("holds", programs::HOLDS_THE_PIPE)).await;
    client.start(sh("leaves", programs::FORKS_AND_LEAVES)).await;
    client.exited("holds").await;
    client.closed("leaves").await;
    server.mark().alive(3).await;
    assert!(!client.terminate_with("holds", json!({"tree": true})).await);
    assert_eq!(client.closed("holds").await.code(), 0);
    server.mark().alive(2).await;
    assert!(!client.terminate_with("leaves", json!({"tree": true})).await);
    server.mark().alive(1).await;
}

#[tokio::test]
async fn tree_of_a_running_process_changes_nothing() {
    let (server, client) = ready().await;
    client.start(sh("p", programs::LEAVES_ITS_GROUP)).await;
    client.sees("p", "ready").await;
    assert!(client.terminate_with("p", json!({"tree": true})).await);
    client.closed("p").await;
    server.mark().alive(1).await;
}

#[tokio::test]
async fn a_start_in_flight_is_cancelled_or_was_there_already() {
    let (server, client) = ready().await;
    for n in 0..60 {
        let id = format!("p{n}");
        let start = client
            .request_start(sh(&id, "echo started; exec sleep 1000"))
            .await;
        let terminate = client
            .request("process/terminate", json!({"processId": id}))
            .await;
        let terminated = client.answer(terminate).await;
        assert_eq!(terminated, Ok(json!({"running": true})), "{id}");
        match client.answer(start).await {
            Ok(_) => assert_eq!(client.closed(&id).await.code(), 137, "{id}"),
            Err(error) => {
                let expected = format!("process {id} start was cancelled");
                assert_eq!(error.parts(), (-32600, &*expected));
                assert_eq!(client.listed(&id).await, None);
                assert!(client.story(&id).events.is_empty());
                // Nothing is left of it, so the id is free.
                assert_eq!(client.run(Start::new(&id, &["true"])).await.code(), 0);
            }
        }
    }
    server.mark().alive(1).await;
}

#[tokio::test]
async fn what_a_cancelled_start_would_have_failed_of_is_not_told() {
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
        // At once, so that the second is there while the first is under way.
        let frames = both
            .iter()
            .map(|message| frames::text(&message.to_string()));
        client.send_frames(frames.collect()).await;
        let terminated = client.answer(terminate).await.expect("an answer");
        let error = client.answer(start).await.expect_err("it can't start");
        // Either it was cancelled, or it was over: both answers say the same.
        if terminated["running"] == true {
            let expected = (-32600, "process p start was cancelled");
            assert_eq!(error.parts(), expected, "{argv} {cwd}");
            cancelled += 1;
        } else {
            assert_eq!(error.code, -32603, "{}", error.message);
        }
    }
    assert!(cancelled > 0, "none was under way when it was cancelled");
}

#[tokio::test]
async fn a_terminate_before_its_start_is_about_nobody() {
    let (_server, client) = ready().await;
    let terminate = client
        .request("process/terminate", json!({"processId": "p"}))
        .await;
    let start = client.request_start(sh("p", "echo fine")).await;
    assert_eq!(
        client.answer(terminate).await,
        Ok(json!({"running": false}))
    );
    assert!(client.answer(start).await.is_ok());
    assert_eq!(client.closed("p").await.text(), "fine\n");
}

#[tokio::test]
async fn output_before_the_end_is_kept() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "printf before; exec sleep 1000"))
        .await;
    client.sees("p", "before").await;
    client.end("p").await;
    let read = client.read("p", json!({})).await;
    assert_eq!(outpost_testkit::Story::page_bytes(&read), b"before");
    assert_eq!(read["exitCode"], 137);
}
