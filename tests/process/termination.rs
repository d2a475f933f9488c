//! Tests `graceMs` and `killGraceMs`: SIGHUP and SIGTERM first, SIGKILL after the grace period.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use outpost_testkit::{Start, deadline, programs, sh};
use serde_json::json;

use crate::ready;

/// Longer than any test waits.
const LONG: u64 = 600_000;

/// A script that exits on SIGTERM.
const EXITS_ON_TERM: &str = "trap '' HUP; trap 'echo bye; exit 7' TERM; echo ready; \
                      while :; do sleep 0.02; done";

#[tokio::test]
async fn process_may_exit_within_the_grace_period() {
    let (_server, client) = ready().await;
    for tty in [false, true] {
        let id = format!("p{tty}");
        client.start(sh(&id, EXITS_ON_TERM).with("tty", tty)).await;
        client.wait_output(&id, "ready").await;
        assert!(client.terminate_with(&id, json!({"graceMs": LONG})).await);
        let log = client.closed(&id).await;
        assert!(log.text().contains("bye"), "{}", log.text());
        assert_eq!(log.code(), 7);
    }
}

#[tokio::test]
async fn sighup_and_sigterm_are_sent_first() {
    let (_server, client) = ready().await;
    let script = "trap 'echo got HUP' HUP; trap 'echo got TERM' TERM; echo ready; \
                  while :; do sleep 0.02; done";
    client.start(sh("p", script)).await;
    client.wait_output("p", "ready").await;
    client.terminate_with("p", json!({"graceMs": LONG})).await;
    client.wait_output("p", "got HUP").await;
    client.wait_output("p", "got TERM").await;
    client.terminate_and_wait("p").await;
}

#[tokio::test]
async fn unhandled_sigterm_ends_the_process() {
    let (_server, client) = ready().await;
    for tty in [false, true] {
        let id = format!("p{tty}");
        let script = "echo ready; exec sleep 1000";
        client.start(sh(&id, script).with("tty", tty)).await;
        client.wait_output(&id, "ready").await;
        assert!(client.terminate_with(&id, json!({"graceMs": LONG})).await);
        assert_eq!(client.closed(&id).await.code(), 143);
    }
}

#[tokio::test]
async fn process_ignoring_sigterm_gets_sighup() {
    let (_server, client) = ready().await;
    let script = "trap '' TERM; echo ready; exec sleep 1000";
    client.start(sh("p", script)).await;
    client.wait_output("p", "ready").await;
    assert!(client.terminate_with("p", json!({"graceMs": LONG})).await);
    assert_eq!(client.closed("p").await.code(), 129);
}

#[tokio::test]
async fn child_of_a_plain_shell_can_handle_sigterm() {
    let (_server, client) = ready().await;
    let script = "(trap 'echo bye; exit' TERM; echo ready; while :; do sleep 0.02; done) & wait";
    client.start(sh("p", script)).await;
    client.wait_output("p", "ready").await;
    assert!(client.terminate_with("p", json!({"graceMs": LONG})).await);
    let log = client.closed("p").await;
    // A shell may report on stderr that its child was killed.
    assert_eq!(log.stdout(), "ready\nbye\n");
    assert_eq!(log.code(), 143);
}

/// Starts a process that leaves a shell running, which holds its output open or not and runs `trap`
/// on SIGTERM.
fn leaves_a_shell(id: &str, dir: &Path, holds: bool, trap: &str) -> Start {
    let streams = match holds {
        true => "",
        false => "</dev/null >/dev/null 2>&1",
    };
    let ready = dir.join(id);
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
async fn leftover_processes_have_the_grace_period() {
    let (server, client) = ready().await;
    for holds in [true, false] {
        let id = format!("p{holds}");
        let bye = server.dir().join(format!("bye-{holds}"));
        let trap = format!("echo bye > {}; exit", bye.display());
        client
            .start(leaves_a_shell(&id, server.dir(), holds, &trap))
            .await;
        match holds {
            true => client.exited(&id).await,
            false => client.closed(&id).await,
        };
        let how = json!({"tree": true, "graceMs": LONG});
        assert!(!client.terminate_with(&id, how).await);
        deadline::poll_until("the trap of the shell", || bye.exists().then_some(())).await;
        server.tag().alive(1).await;
    }
}

#[tokio::test]
async fn leftover_processes_are_killed_after_the_grace_period() {
    let (server, client) = ready().await;
    for holds in [true, false] {
        let id = format!("p{holds}");
        let left = leaves_a_shell(&id, server.dir(), holds, "").with("killGraceMs", 300);
        client.start(left).await;
        match holds {
            true => client.exited(&id).await,
            false => client.closed(&id).await,
        };
        let request = Instant::now();
        assert!(!client.terminate_with(&id, json!({"tree": true})).await);
        server.tag().alive(1).await;
        let took = request.elapsed();
        assert!(took >= Duration::from_millis(290), "{took:?}");
    }
}

#[tokio::test]
async fn process_is_killed_after_the_grace_period() {
    let (server, client) = ready().await;
    let script = "trap '' TERM HUP; sleep 1000 & echo ready; exec sleep 1000";
    client.start(sh("p", script)).await;
    client.wait_output("p", "ready").await;
    let start = Instant::now();
    assert!(client.terminate_with("p", json!({"graceMs": 400})).await);
    assert_eq!(client.closed("p").await.code(), 137);
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(390), "{took:?}");
    server.tag().alive(1).await;
}

#[tokio::test]
async fn grace_period_can_be_set_at_start() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", EXITS_ON_TERM).with("killGraceMs", LONG))
        .await;
    client.wait_output("p", "ready").await;
    assert!(client.terminate("p").await);
    assert_eq!(client.closed("p").await.code(), 7);

    client
        .start(sh("q", programs::IGNORES_TERM).with("killGraceMs", 300))
        .await;
    client.wait_output("q", "ready").await;
    let start = Instant::now();
    assert!(client.terminate("q").await);
    assert_eq!(client.closed("q").await.code(), 137);
    assert!(start.elapsed() >= Duration::from_millis(290));
}

#[tokio::test]
async fn grace_of_terminate_precedes_that_of_start() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", EXITS_ON_TERM).with("killGraceMs", LONG))
        .await;
    client.wait_output("p", "ready").await;
    assert!(client.terminate_with("p", json!({"graceMs": 0})).await);
    let log = client.closed("p").await;
    assert_eq!((log.text().as_str(), log.code()), ("ready\n", 137));
}

#[tokio::test]
async fn second_terminate_without_grace_kills_at_once() {
    let (_server, client) = ready().await;
    client.start(sh("p", programs::IGNORES_TERM)).await;
    client.wait_output("p", "ready").await;
    assert!(client.terminate_with("p", json!({"graceMs": LONG})).await);
    assert!(client.terminate("p").await);
    assert_eq!(client.closed("p").await.code(), 137);
}

#[tokio::test]
async fn longest_grace_period_works() {
    let (_server, client) = ready().await;
    client
        .start(sh("p", EXITS_ON_TERM).with("killGraceMs", u64::MAX))
        .await;
    client.wait_output("p", "ready").await;
    assert!(
        client
            .terminate_with("p", json!({"graceMs": u64::MAX}))
            .await
    );
    assert_eq!(client.closed("p").await.code(), 7);
}

#[tokio::test]
async fn stopped_process_receives_sigterm() {
    let (_server, client) = ready().await;
    client.start(sh("p", EXITS_ON_TERM)).await;
    client.wait_output("p", "ready").await;
    client.signal("p", "stop").await;
    assert!(client.terminate_with("p", json!({"graceMs": LONG})).await);
    assert_eq!(client.closed("p").await.code(), 7);
}

#[tokio::test]
async fn other_processes_do_not_wait_for_the_grace_period() {
    let (_server, client) = ready().await;
    client.start(sh("p", programs::IGNORES_TERM)).await;
    client.wait_output("p", "ready").await;
    client.terminate_with("p", json!({"graceMs": LONG})).await;
    assert_eq!(client.run(sh("q", "echo fine")).await.text(), "fine\n");
    client.terminate_and_wait("p").await;
}
