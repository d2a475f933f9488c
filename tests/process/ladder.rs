//! `graceMs` and `killGraceMs`: hangup and terminate first, kill when the grace is over.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use outpost_testkit::{Start, patience, programs, sh};
use serde_json::json;

use crate::ready;

/// Longer than any test waits.
const LONG: u64 = 600_000;

/// Takes its leave when it is asked to.
const POLITE: &str = "trap '' HUP; trap 'echo bye; exit 7' TERM; echo ready; \
                      while :; do sleep 0.02; done";

#[tokio::test]
async fn within_the_grace_a_process_ends_in_its_own_way() {
    let (_server, client) = ready().await;
    for tty in [false, true] {
        let id = format!("p{tty}");
        client.start(sh(&id, POLITE).with("tty", tty)).await;
        client.sees(&id, "ready").await;
        assert!(client.terminate_with(&id, json!({"graceMs": LONG})).await);
        let story = client.closed(&id).await;
        assert!(story.text().contains("bye"), "{}", story.text());
        assert_eq!(story.code(), 7);
    }
}

#[tokio::test]
async fn it_is_asked_with_hangup_and_terminate() {
    let (_server, client) = ready().await;
    let script = "trap 'echo got HUP' HUP; trap 'echo got TERM' TERM; echo ready; \
                  while :; do sleep 0.02; done";
    client.start(sh("p", script)).await;
    client.sees("p", "ready").await;
    client.terminate_with("p", json!({"graceMs": LONG})).await;
    client.sees("p", "got HUP").await;
    client.sees("p", "got TERM").await;
    client.end("p").await;
}

#[tokio::test]
async fn who_has_no_answer_to_either_ends_of_the_terminate() {
    let (_server, client) = ready().await;
    for tty in [false, true] {
        let id = format!("p{tty}");
        let script = "echo ready; exec sleep 1000";
        client.start(sh(&id, script).with("tty", tty)).await;
        client.sees(&id, "ready").await;
        assert!(client.terminate_with(&id, json!({"graceMs": LONG})).await);
        assert_eq!(client.closed(&id).await.code(), 143);
    }
}

#[tokio::test]
async fn who_does_not_listen_to_terminate_is_hung_up() {
    let (_server, client) = ready().await;
    let script = "trap '' TERM; echo ready; exec sleep 1000";
    client.start(sh("p", script)).await;
    client.sees("p", "ready").await;
    assert!(client.terminate_with("p", json!({"graceMs": LONG})).await);
    assert_eq!(client.closed("p").await.code(), 129);
}

#[tokio::test]
async fn whom_a_plain_shell_has_started_may_take_leave_too() {
    let (_server, client) = ready().await;
    let script = "(trap 'echo bye; exit' TERM; echo ready; while :; do sleep 0.02; done) & wait";
    client.start(sh("p", script)).await;
    client.sees("p", "ready").await;
    assert!(client.terminate_with("p", json!({"graceMs": LONG})).await);
    let story = client.closed("p").await;
    // A shell may complain about what it has lost.
    assert_eq!(story.stdout(), "ready\nbye\n");
    assert_eq!(story.code(), 143);
}

/// Leaves a shell running that holds its output or nothing of it, and that takes its leave when it
/// is asked to, or never.
fn leaves(id: &str, folder: &Path, holds: bool, trap: &str) -> Start {
    let streams = match holds {
        true => "",
        false => "</dev/null >/dev/null 2>&1",
    };
    let ready = folder.join(id);
    let ready = ready.display();
    sh(
        id,
        &format!(
            "(trap '{trap}' TERM; : > {ready}; while :; do sleep 0.02; done) {streams} & \
             until [ -e {ready} ]; do sleep 0.01; done"
        ),
    )
}

#[tokio::test]
async fn what_a_process_has_left_running_has_the_grace_too() {
    let (server, client) = ready().await;
    for holds in [true, false] {
        let id = format!("p{holds}");
        let bye = server.folder().join(format!("bye-{holds}"));
        let trap = format!("echo bye > {}; exit", bye.display());
        client
            .start(leaves(&id, server.folder(), holds, &trap))
            .await;
        match holds {
            true => client.exited(&id).await,
            false => client.closed(&id).await,
        };
        let how = json!({"tree": true, "graceMs": LONG});
        assert!(!client.terminate_with(&id, how).await);
        patience::seen("its farewell", || bye.exists().then_some(())).await;
        server.mark().alive(1).await;
    }
}

#[tokio::test]
async fn what_a_process_has_left_running_is_killed_when_the_grace_is_over() {
    let (server, client) = ready().await;
    for holds in [true, false] {
        let id = format!("p{holds}");
        let left = leaves(&id, server.folder(), holds, "").with("killGraceMs", 300);
        client.start(left).await;
        match holds {
            true => client.exited(&id).await,
            false => client.closed(&id).await,
        };
        let asked = Instant::now();
        assert!(!client.terminate_with(&id, json!({"tree": true})).await);
        server.mark().alive(1).await;
        let took = asked.elapsed();
        assert!(took >= Duration::from_millis(290), "{took:?}");
    }
}

#[tokio::test]
async fn when_the_grace_is_over_it_is_killed() {
    let (server, client) = ready().await;
    let script = "trap '' TERM HUP; sleep 1000 & echo ready; exec sleep 1000";
    client.start(sh("p", script)).await;
    client.sees("p", "ready").await;
    let start = Instant::now();
    assert!(client.terminate_with("p", json!({"graceMs": 400})).await);
    assert_eq!(client.closed("p").await.code(), 137);
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(390), "{took:?}");
    server.mark().alive(1).await;
}

#[tokio::test]
async fn the_grace_can_be_given_at_the_start() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", POLITE).with("killGraceMs", LONG))
        .await;
    client.sees("p", "ready").await;
    assert!(client.terminate("p").await);
    assert_eq!(client.closed("p").await.code(), 7);

    client
        .start(sh("q", programs::IGNORES_TERM).with("killGraceMs", 300))
        .await;
    client.sees("q", "ready").await;
    let start = Instant::now();
    assert!(client.terminate("q").await);
    assert_eq!(client.closed("q").await.code(), 137);
    assert!(start.elapsed() >= Duration::from_millis(290));
}

#[tokio::test]
async fn the_grace_of_the_terminate_goes_before_that_of_the_start() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", POLITE).with("killGraceMs", LONG))
        .await;
    client.sees("p", "ready").await;
    assert!(client.terminate_with("p", json!({"graceMs": 0})).await);
    let story = client.closed("p").await;
    assert_eq!((story.text().as_str(), story.code()), ("ready\n", 137));
}

#[tokio::test]
async fn who_has_no_more_patience_may_kill_at_once() {
    let (_server, client) = ready().await;
    client.start(sh("p", programs::IGNORES_TERM)).await;
    client.sees("p", "ready").await;
    assert!(client.terminate_with("p", json!({"graceMs": LONG})).await);
    assert!(client.terminate("p").await);
    assert_eq!(client.closed("p").await.code(), 137);
}

#[tokio::test]
async fn the_longest_grace_there_is_works() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", POLITE).with("killGraceMs", u64::MAX))
        .await;
    client.sees("p", "ready").await;
    assert!(
        client
            .terminate_with("p", json!({"graceMs": u64::MAX}))
            .await
    );
    assert_eq!(client.closed("p").await.code(), 7);
}

#[tokio::test]
async fn a_stopped_process_hears_that_it_should_end() {
    let (_server, client) = ready().await;
    client.start(sh("p", POLITE)).await;
    client.sees("p", "ready").await;
    client.signal("p", "stop").await;
    assert!(client.terminate_with("p", json!({"graceMs": LONG})).await);
    assert_eq!(client.closed("p").await.code(), 7);
}

#[tokio::test]
async fn other_processes_do_not_wait_for_the_grace() {
    let (_server, client) = ready().await;
    client.start(sh("p", programs::IGNORES_TERM)).await;
    client.sees("p", "ready").await;
    client.terminate_with("p", json!({"graceMs": LONG})).await;
    assert_eq!(client.run(sh("q", "echo fine")).await.text(), "fine\n");
    client.end("p").await;
}
