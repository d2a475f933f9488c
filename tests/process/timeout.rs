//! `timeoutMs`.

use std::time::{Duration, Instant};

use outpost_testkit::{programs, sh};
use serde_json::json;

use crate::ready;

#[tokio::test]
async fn when_the_time_is_over_the_tree_is_killed_and_the_code_is_124() {
    let (server, client) = ready().await;
    for tty in [false, true] {
        let id = format!("p{tty}");
        let script = "trap '' TERM HUP; sleep 1000 & echo ready; exec sleep 1000";
        let begun = Instant::now();
        client
            .start(sh(&id, script).with("tty", tty).with("timeoutMs", 400))
            .await;
        let story = client.closed(&id).await;
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(390), "{took:?}");
        assert_eq!(story.code(), 124);
        assert_eq!(client.read(&id, json!({})).await["exitCode"], 124);
        server.mark().alive(1).await;
    }
}

#[tokio::test]
async fn descendants_in_sessions_of_their_own_die_too() {
    let (server, client) = ready().await;
    client
        .start(sh("p", programs::LEAVES_ITS_GROUP).with("timeoutMs", 300))
        .await;
    assert_eq!(client.exited("p").await.code(), 124);
    server.mark().alive(1).await;
}

#[tokio::test]
async fn who_ends_in_time_is_not_concerned() {
    let (_server, client) = ready().await;
    let story = client
        .run(sh("p", "exit 3").with("timeoutMs", 60_000))
        .await;
    assert_eq!(story.code(), 3);
    let story = client
        .run(sh("q", "exit 4").with("timeoutMs", u64::MAX))
        .await;
    assert_eq!(story.code(), 4);
}

#[tokio::test]
async fn who_is_ended_before_its_time_is_over_was_not_timed_out() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", "echo ready; exec sleep 1000").with("timeoutMs", 60_000))
        .await;
    client.sees("p", "ready").await;
    assert_eq!(client.end("p").await.code(), 137);
}

#[tokio::test]
async fn what_was_left_behind_in_time_is_not_concerned() {
    let (server, client) = ready().await;
    client
        .start(sh("p", programs::HOLDS_THE_PIPE).with("timeoutMs", 300))
        .await;
    assert_eq!(client.exited("p").await.code(), 0);
    client
        .start(sh("q", "exec sleep 1000").with("timeoutMs", 500))
        .await;
    assert_eq!(client.closed("q").await.code(), 124);
    assert!(
        !client.story("p").is_closed(),
        "its time was over before q's"
    );
    server.mark().alive(2).await;
}

#[tokio::test]
async fn no_time_at_all_is_over_however_quick_the_program_is() {
    let (_server, client) = ready().await;
    for number in 0..30 {
        let id = format!("p{number}");
        client.start(sh(&id, "exit 0").with("timeoutMs", 0)).await;
        assert_eq!(client.exited(&id).await.code(), 124);
    }
}
