//! Tests `timeoutMs`.

use std::time::{Duration, Instant};

use outpost_testkit::{programs, sh};
use serde_json::json;

use crate::ready;

#[tokio::test]
async fn timeout_kills_the_tree_and_returns_124() {
    let (server, client) = ready().await;
    for tty in [false, true] {
        let id = format!("p{tty}");
        let script = "trap '' TERM HUP; sleep 1000 & echo ready; exec sleep 1000";
        let since = Instant::now();
        client
            .start(sh(&id, script).with("tty", tty).with("timeoutMs", 400))
            .await;
        let log = client.closed(&id).await;
        let took = since.elapsed();
        assert!(took >= Duration::from_millis(390), "{took:?}");
        assert_eq!(log.code(), 124);
        assert_eq!(client.read(&id, json!({})).await["exitCode"], 124);
        server.tag().alive(1).await;
    }
}

#[tokio::test]
async fn descendants_in_other_sessions_are_killed() {
    let (server, client) = ready().await;
    client
        .start(sh("p", programs::LEAVES_ITS_GROUP).with("timeoutMs", 300))
        .await;
    assert_eq!(client.exited("p").await.code(), 124);
    server.tag().alive(1).await;
}

#[tokio::test]
async fn process_exiting_in_time_is_not_affected() {
    let (_server, client) = ready().await;
    let log = client
        .run(sh("p", "exit 3").with("timeoutMs", 60_000))
        .await;
    assert_eq!(log.code(), 3);
    let log = client
        .run(sh("q", "exit 4").with("timeoutMs", u64::MAX))
        .await;
    assert_eq!(log.code(), 4);
}

#[tokio::test]
async fn process_killed_earlier_did_not_time_out() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "echo ready; exec sleep 1000").with("timeoutMs", 60_000))
        .await;
    client.wait_output("p", "ready").await;
    assert_eq!(client.terminate_and_wait("p").await.code(), 137);
}

#[tokio::test]
async fn leftover_processes_are_not_affected() {
    let (server, client) = ready().await;
    client
        .start(sh("p", programs::HOLDS_THE_PIPE).with("timeoutMs", 300))
        .await;
    assert_eq!(client.exited("p").await.code(), 0);
    client
        .start(sh("q", "exec sleep 1000").with("timeoutMs", 500))
        .await;
    assert_eq!(client.closed("q").await.code(), 124);
    assert!(!client.event_log("p").is_closed(), "p timed out before q");
    server.tag().alive(2).await;
}

#[tokio::test]
async fn zero_timeout_always_expires() {
    let (_server, client) = ready().await;
    for number in 0..30 {
        let id = format!("p{number}");
        client.start(sh(&id, "exit 0").with("timeoutMs", 0)).await;
        assert_eq!(client.exited(&id).await.code(), 124);
    }
}
