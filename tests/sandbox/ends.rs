//! Tests how a sandboxed process ends, with its descendants.

use outpost_testkit::{deadline, programs, sh};
use serde_json::json;

use super::SandboxDirs;
use crate::{outpost, ready, ready_with};

#[tokio::test]
async fn signal_reaches_the_program_and_its_trap() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let script = "trap 'echo caught; exit 9' INT TERM HUP QUIT USR1; \
                  echo ready; while :; do sleep 0.1; done";
    for signal in ["interrupt", "terminate", "hangup", "quit", "user1"] {
        client.start(dirs.script(signal, script)).await;
        client.wait_output(signal, "ready").await;
        client.signal(signal, signal).await;
        let log = client.closed(signal).await;
        assert_eq!(log.code(), 9, "{signal}");
        assert!(log.stdout().contains("caught"), "{signal}");
    }
}

#[tokio::test]
async fn sigterm_handler_runs_within_the_grace_period() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let script = "trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.1; done";
    client.start(dirs.script("p", script)).await;
    client.wait_output("p", "ready").await;
    client.terminate_with("p", json!({"graceMs": 20_000})).await;
    let log = client.closed("p").await;
    assert_eq!(log.code(), 4);
    assert!(log.stdout().contains("bye"));
}

#[tokio::test]
async fn no_process_survives_termination() {
    for trees in ["auto", "subreaper", "group"] {
        let server = outpost().args(&["--trees", trees]).start().await;
        let client = server.client().await;
        let dirs = SandboxDirs::new();
        for (id, script) in [
            ("ignores", programs::IGNORES_TERM),
            ("daemon", programs::DAEMON),
            ("group", programs::LEAVES_ITS_GROUP),
        ] {
            client.start(dirs.script(id, script)).await;
            client.wait_output(id, "ready").await;
            client.terminate(id).await;
            client.closed(id).await;
        }
        server.tag().alive(1).await;
    }
}

/// As with unsandboxed processes. Placeholders stay as long as the leftover processes.
#[tokio::test]
async fn natural_exit_kills_nothing_inside() {
    for trees in ["auto", "subreaper", "group"] {
        let server = outpost().args(&["--trees", trees]).start().await;
        let client = server.client().await;
        let dirs = SandboxDirs::new();
        let held = || dirs.workspace().join(".git").exists();
        for (id, script) in [
            ("leaves", programs::FORKS_AND_LEAVES),
            ("leaves a daemon", programs::LEAVES_A_DAEMON),
        ] {
            let log = client.run(dirs.script(id, script)).await;
            assert_eq!(log.code(), 0, "{trees} {id}");
            server.tag().alive(2).await;
            let beside = format!("beside what {id}");
            client.run(dirs.script(&beside, "true")).await;
            assert!(!client.terminate(id).await, "{trees} {id}");
            assert_eq!(server.tag().living().len(), 2, "{trees} {id}");
            assert!(held(), "{trees} {id}");
            client.terminate_with(id, json!({"tree": true})).await;
            server.tag().alive(1).await;
        }
        // Ending the session kills the leftover process and removes its placeholders.
        client
            .run(dirs.script("last", programs::LEAVES_A_DAEMON))
            .await;
        server.tag().alive(2).await;
        client.call("session/close", json!({})).await;
        server.tag().alive(1).await;
        deadline::poll_until("the placeholder to be removed", || (!held()).then_some(())).await;
    }
}

/// The limit bounds the resources that the server holds for them.
#[tokio::test]
async fn leftover_processes_count_as_running() {
    let (server, client) = ready_with(&["--max-processes", "2"]).await;
    let dirs = SandboxDirs::new();
    for id in ["one", "other"] {
        let log = client.run(dirs.script(id, programs::LEAVES_A_DAEMON)).await;
        assert_eq!(log.code(), 0);
    }
    // Repeated, because a slot would be freed a moment after the close.
    for _ in 0..50 {
        let error = client.start_fails(sh("more", "true")).await;
        assert_eq!(error.parts(), (-32001, "Server overloaded; retry later."));
    }
    assert_eq!(server.tag().living().len(), 3);
    client.terminate_with("one", json!({"tree": true})).await;
    // No event reports a free slot.
    let started = async || loop {
        let params = json!({"processId": "more", "argv": ["true"], "cwd": "file:///", "env": {}});
        match client.try_call("process/start", params).await {
            Err(error) => assert_eq!(error.code, -32001),
            Ok(_) => break,
        }
    };
    deadline::expect_soon("a free slot", started()).await;
    client.closed("more").await;
}

/// A client needs the id to terminate them.
#[tokio::test]
async fn leftover_processes_keep_their_id() {
    let (server, client) = ready_with(&["--closed-retention", "100ms"]).await;
    let dirs = SandboxDirs::new();
    client
        .run(dirs.script("leaves", programs::LEAVES_A_DAEMON))
        .await;
    client.run(sh("closed", "true")).await;
    let forgotten = async |id| while client.listed(id).await.is_some() {};
    deadline::expect_soon("a closed process to expire", forgotten("closed")).await;
    assert!(client.listed("leaves").await.is_some());
    client.terminate_with("leaves", json!({"tree": true})).await;
    server.tag().alive(1).await;
    deadline::expect_soon("the other one to expire", forgotten("leaves")).await;
}

#[tokio::test]
async fn leftover_processes_keep_streams_and_confinement() {
    for trees in ["auto", "subreaper", "group"] {
        let server = outpost().args(&["--trees", trees]).start().await;
        let client = server.client().await;
        let dirs = SandboxDirs::new();
        // A PTY that loses its session leader sends SIGHUP to its foreground group.
        let script = "trap '' HUP; \
                      { while [ ! -e go ]; do sleep 0.01; done; echo later; mkdir .git/x; } & \
                      exit 7";
        for (id, start) in [
            ("pipes", dirs.script("pipes", script).stdin()),
            ("terminal", dirs.script("terminal", script).tty()),
        ] {
            client.start(start).await;
            client.exited(id).await;
            let go = dirs.workspace().join("go");
            std::fs::write(&go, "").expect("written");
            let log = client.closed(id).await;
            assert_eq!(log.code(), 7, "{trees} {id}");
            let printed = log.text();
            assert!(printed.contains("later"), "{trees} {id}: {printed}");
            assert!(printed.contains("Read-only"), "{trees} {id}: {printed}");
            std::fs::remove_file(go).expect("it exists");
        }
    }
}

/// The server waits 20 ms before it reports the exit, which can be too short on a busy machine. Output
/// counts if it came before the exit, and one such round is enough.
#[tokio::test]
async fn output_right_after_the_exit_is_delivered() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let mut delivered = 0;
    for round in 0..20 {
        let id = round.to_string();
        let script = "(sleep 0.001; echo permission denied) & exit 1";
        let log = client.run(dirs.script(&id, script)).await;
        assert_eq!(log.code(), 1);
        assert_eq!(log.stdout(), "permission denied\n", "round {round}");
        let in_time = log.kinds()[0] == "output";
        assert_eq!(log.denied(), in_time, "round {round}");
        delivered += usize::from(in_time);
    }
    assert!(delivered > 0);
}
