//! Tests that every way to end misbehaving programs leaves no process.

use outpost_testkit::{Client, Server, deadline, programs, sh};
use serde_json::json;

use crate::outpost;

const MISBEHAVING: [(&str, &str); 8] = [
    ("ignores TERM", programs::IGNORES_TERM),
    ("holds the pipe", programs::HOLDS_THE_PIPE),
    ("forks and leaves", programs::FORKS_AND_LEAVES),
    ("a daemon", programs::DAEMON),
    ("leaves a daemon", programs::LEAVES_A_DAEMON),
    ("leaves its group", programs::LEAVES_ITS_GROUP),
    ("forks when it is asked to end", FORKS_ON_TERM),
    ("a small fork bomb", FORK_BOMB),
];

/// Starts a process in a new session when it receives SIGTERM.
const FORKS_ON_TERM: &str = "trap 'setsid sleep 1000 & exit 0' TERM HUP; echo ready; \
                                while :; do sleep 0.01; done";

/// Forks until there are 64 processes, each in its own session and with its parent gone.
const FORK_BOMB: &str = "bomb() { [ $1 -gt 5 ] && exec sleep 1000; bomb $(($1 + 1)) & bomb $(($1 + 1)) & \
                         [ $1 -gt 0 ] || { echo ready; sleep 1000; }; }; bomb 0";

/// Starts all misbehaving programs.
async fn start_all(server: &Server) -> Client {
    let client = server.client().await;
    for (name, script) in MISBEHAVING {
        client.start(sh(name, script)).await;
        client.wait_output(name, "ready").await;
    }
    client
}

async fn nothing_left(server: &Server, helpers: usize) {
    server.tag().alive(1 + helpers).await;
}

/// Runs a test with each kind of process tree that this host has.
async fn with_each_kind(test: impl AsyncFn(&Server, usize)) {
    for (kind, helpers) in [("auto", 0), ("subreaper", 1)] {
        let server = outpost()
            .args(&["--trees", kind, "--session-ttl", "100ms"])
            .start()
            .await;
        let helpers = match server.tag().living().len() {
            1 => 0,
            _ => helpers.max(1),
        };
        test(&server, helpers).await;
    }
}

#[tokio::test]
async fn terminate_leaves_nothing() {
    with_each_kind(async |server, helpers| {
        let client = start_all(server).await;
        for (name, _) in MISBEHAVING {
            client.terminate_with(name, json!({"tree": true})).await;
        }
        nothing_left(server, helpers).await;
    })
    .await;
}

#[tokio::test]
async fn terminate_with_grace_leaves_nothing() {
    with_each_kind(async |server, helpers| {
        let client = start_all(server).await;
        for (name, _) in MISBEHAVING {
            client
                .terminate_with(name, json!({"tree": true, "graceMs": 300}))
                .await;
        }
        nothing_left(server, helpers).await;
    })
    .await;
}

#[tokio::test]
async fn timeout_leaves_nothing() {
    with_each_kind(async |server, helpers| {
        let client = server.client().await;
        for (name, script) in [
            ("deaf", programs::IGNORES_TERM),
            ("daemon", programs::DAEMON),
            ("group", programs::LEAVES_ITS_GROUP),
            ("bomb", FORK_BOMB),
            ("forks", FORKS_ON_TERM),
        ] {
            let start = sh(name, script).with("timeoutMs", 1000);
            client.start(start).await;
        }
        for name in ["deaf", "daemon", "group", "bomb", "forks"] {
            assert_eq!(client.closed(name).await.code(), 124);
        }
        nothing_left(server, helpers).await;
    })
    .await;
}

#[tokio::test]
async fn session_close_leaves_nothing() {
    with_each_kind(async |server, helpers| {
        let client = start_all(server).await;
        client.call("session/close", json!({})).await;
        nothing_left(server, helpers).await;
    })
    .await;
}

#[tokio::test]
async fn session_expiry_leaves_nothing() {
    with_each_kind(async |server, helpers| {
        start_all(server).await.cut().await;
        nothing_left(server, helpers).await;
    })
    .await;
}

#[tokio::test]
async fn server_shutdown_leaves_nothing() {
    for kind in ["auto", "subreaper"] {
        let mut server = outpost().args(&["--trees", kind]).start().await;
        let _client = start_all(&server).await;
        server.signal(rustix::process::Signal::TERM);
        assert_eq!(server.wait().await.code, Some(0));
        server.tag().gone().await;
    }
}

#[tokio::test]
async fn exit_while_being_killed_is_one_exit_and_leaves_nothing() {
    with_each_kind(async |server, helpers| {
        let client = server.client().await;
        for number in 0..60 {
            let id = format!("p{number}");
            // The process exits before, during or after the kill.
            let script =
                "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo ready; read x; exit 3";
            client.start(sh(&id, script).stdin()).await;
            client.wait_output(&id, "ready").await;
            let write = client.request_write(&id, "\n", "w").await;
            for _ in 0..number % 4 {
                client.check_alive().await;
            }
            let terminate = json!({"processId": id, "tree": true});
            let terminate = client.request("process/terminate", terminate).await;
            assert!(client.response(write).await.is_ok());
            assert!(client.response(terminate).await.is_ok());
            let log = client.closed(&id).await;
            assert!([3, 137].contains(&log.code()), "{}", log.code());
        }
        nothing_left(server, helpers).await;
    })
    .await;
}

#[tokio::test]
async fn leftover_processes_live_until_their_session_ends() {
    with_each_kind(async |server, helpers| {
        let client = server.client().await;
        let mut left = Vec::new();
        for (id, start) in [("child", ""), ("daemon", "setsid")] {
            let script = format!("{start} sleep 1000 >/dev/null 2>&1 </dev/null & echo $!");
            let log = client.run(sh(id, &script)).await;
            assert_eq!(log.code(), 0);
            left.push(log.text().trim().parse::<i32>().expect("a number"));
        }
        // The end of another process doesn't affect them.
        client.start(sh("other", "exec sleep 1000")).await;
        client.terminate_and_wait("other").await;
        // A process that executes a program at this moment has no environment to be found by.
        deadline::poll_until("both leftover processes", || {
            let living = server.tag().living();
            left.iter().all(|pid| living.contains(pid)).then_some(())
        })
        .await;
        client.call("session/close", json!({})).await;
        nothing_left(server, helpers).await;
    })
    .await;
}

/// An unsandboxed process can kill everything of its user, also those that supervise it.
#[tokio::test]
async fn killed_supervision_leaves_nothing() {
    let server = outpost().args(&["--trees", "subreaper"]).start().await;
    let client = server.client().await;
    client.start(sh("other", "exec sleep 1000")).await;
    let script = "R=$PPID; F=$(cut -d' ' -f4 /proc/$R/stat); \
                  (setsid sh -c 'echo $$; exec sleep 1000' &); read go; kill -KILL $F $R";
    client.start(sh("attack", script).stdin()).await;
    let left = client.wait_output("attack", "\n").await.text();
    let left: i32 = left.trim().parse().expect("a number");
    let write = client.request_write("attack", "\n", "w").await;
    assert!(client.response(write).await.is_ok());
    client.closed("attack").await;
    client.terminate_with("attack", json!({"tree": true})).await;
    let is_gone = || (!server.tag().living().contains(&left)).then_some(());
    deadline::poll_until("the process that was left", is_gone).await;
    assert_eq!(client.run(sh("next", "echo hi")).await.text(), "hi\n");
    let other = client.listed("other").await.expect("it is known");
    assert_eq!(other["state"], "running");
    let answer = client.call("session/close", json!({})).await;
    assert_eq!(answer, json!({}));
    nothing_left(&server, 0).await;
}
