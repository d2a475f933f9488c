//! Tests how a process ends: by its timeout, by a kill, with its connection.

use std::time::{Duration, Instant};

use outpost_testkit::{Client, Server, Transport, programs};
use serde_json::json;

use super::dialect::{Dialect, app_handshake, with_every_dialect};
use crate::unsandboxed_outpost;

/// The host's best kind of process tree, and the one that every host has.
const KINDS: [&str; 2] = ["auto", "subreaper"];
/// The longest time that processes may outlive their connection.
const GONE_WITHIN: Duration = Duration::from_secs(3);

#[tokio::test]
async fn timeout_kills_the_tree_and_returns_124() {
    with_every_dialect(async |dialect, server, client| {
        for more in [json!({}), json!({"tty": true})] {
            let mut more = more;
            more["timeoutMs"] = json!(300);
            let script = "trap '' TERM HUP; sleep 1000 & setsid sleep 1000 & exec sleep 1000";
            let since = Instant::now();
            let outcome = dialect.run(client, "p", script, more).await;
            let took = since.elapsed();
            assert!(took >= Duration::from_millis(290), "{took:?}");
            assert_eq!(outcome.exit_code, 124);
            server.tag().alive(1).await;
        }
    })
    .await;
}

#[tokio::test]
async fn output_before_the_timeout_is_returned() {
    with_every_dialect(async |dialect, _, client| {
        let script = "echo output; exec sleep 1000";
        let outcome = dialect
            .run(client, "p", script, json!({"timeoutMs": 1000}))
            .await;
        assert_eq!((outcome.exit_code, &*outcome.stdout), (124, "output\n"));
        let outcome = dialect
            .run(client, "p", "exec sleep 1000", json!({"timeoutMs": 0}))
            .await;
        assert_eq!(outcome.exit_code, 124);
        for _ in 0..10 {
            let outcome = dialect
                .run(client, "p", "exit 0", json!({"timeoutMs": 0}))
                .await;
            assert_eq!(outcome.exit_code, 124, "a zero timeout always expires");
        }
    })
    .await;
}

#[tokio::test]
async fn kill_ends_the_whole_tree_and_sets_the_code() {
    with_every_dialect(async |dialect, server, client| {
        for script in [
            programs::IGNORES_TERM,
            programs::DAEMON,
            programs::LEAVES_ITS_GROUP,
        ] {
            let more = json!({"streamStdoutStderr": true});
            let run = dialect.begin(client, "p", script, more).await;
            dialect.wait_output(client, "p", "ready").await;
            let kill = dialect.params_for("p", json!({}));
            assert_eq!(client.call(dialect.kill(), kill).await, json!({}));
            assert_eq!(run.end(client).await.exit_code, 137);
            server.tag().alive(1).await;
        }
    })
    .await;
}

#[tokio::test]
async fn exited_process_with_open_output_is_not_running() {
    with_every_dialect(async |dialect, _, client| {
        let more = json!({"streamStdoutStderr": true, "streamStdin": true});
        let run = dialect
            .begin(client, "p", "sleep 1000 & echo ready", more)
            .await;
        dialect.wait_output(client, "p", "ready").await;
        let expected = match dialect {
            Dialect::Spawn => "process \"p\" is no longer running",
            Dialect::Command => "command/exec \"p\" is no longer running",
        };
        // An empty write is harmless, while a kill would take effect until the server has seen the
        // exit.
        let error = loop {
            let params = dialect.params_for("p", json!({"deltaBase64": ""}));
            if let Err(error) = client.try_call(dialect.write(), params).await {
                break error;
            }
        };
        assert_eq!(error.parts(), (-32600, expected));
        let error = client
            .call_fails(dialect.kill(), dialect.params_for("p", json!({})))
            .await;
        assert_eq!(error.parts(), (-32600, expected));
        assert!(!run.is_over(client));
    })
    .await;
}

/// Starts processes that fork and daemonize in various ways, and returns how many are alive.
async fn populate(dialect: Dialect, server: &Server, client: &Client) -> usize {
    let scripts = [
        (programs::IGNORES_TERM, 1),
        (programs::DAEMON, 2),
        (programs::LEAVES_ITS_GROUP, 2),
        (programs::LEAVES_A_DAEMON, 1),
        (programs::HOLDS_THE_PIPE, 1),
    ];
    let mut count = 1;
    for (number, (script, alive)) in scripts.into_iter().enumerate() {
        let id = format!("{dialect:?}{number}");
        let more = match dialect {
            Dialect::Spawn => json!({"streamStdoutStderr": true, "timeoutMs": null}),
            Dialect::Command => json!({"streamStdoutStderr": true, "disableTimeout": true}),
        };
        dialect.begin(client, &id, script, more).await;
        dialect.wait_output(client, &id, "ready").await;
        count += alive;
        server.tag().alive(count).await;
    }
    count
}

#[tokio::test]
async fn closed_connection_leaves_no_process() {
    for kind in KINDS {
        for dialect in [Dialect::Spawn, Dialect::Command] {
            for abruptly in [false, true] {
                let server = unsandboxed_outpost().args(&["--trees", kind]).start().await;
                let client = server.connect().await;
                app_handshake(&client).await;
                let other = server.connect().await;
                app_handshake(&other).await;
                let others = other
                    .request(
                        "process/spawn",
                        json!({
                            "command": ["sleep", "1000"], "processHandle": "o", "cwd": "/",
                        }),
                    )
                    .await;
                other.response(others).await.expect("spawn");
                server.tag().alive(2).await;
                let kill = json!({"processHandle": "o"});
                other.call("process/kill", kill).await;
                server.tag().alive(1).await;
                populate(dialect, &server, &client).await;
                let since = Instant::now();
                if abruptly {
                    client.cut().await;
                } else {
                    client.close().await;
                }
                server.tag().alive(1).await;
                let took = since.elapsed();
                assert!(took < GONE_WITHIN, "{took:?}");
            }
        }
    }
}

#[tokio::test]
async fn processes_of_other_connections_survive() {
    let server = unsandboxed_outpost().start().await;
    let client = server.connect().await;
    app_handshake(&client).await;
    let other = server.connect().await;
    app_handshake(&other).await;
    let spawn = Dialect::Spawn;
    let more = json!({"streamStdin": true});
    let run = spawn
        .begin(&other, "p", "read x; exit 8", more.clone())
        .await;
    spawn.begin(&client, "p", "read x", more).await;
    server.tag().alive(3).await;
    client.close().await;
    server.tag().alive(2).await;
    spawn.write_text(&other, "p", "\n").await;
    assert_eq!(run.end(&other).await.exit_code, 8);
}

#[tokio::test]
async fn only_session_processes_outlive_the_connection() {
    let server = unsandboxed_outpost().start().await;
    let client = server.client().await;
    client
        .start(outpost_testkit::sh("p", "exec sleep 1000"))
        .await;
    let command = json!({"command": ["sleep", "1000"], "disableTimeout": true});
    client.request("command/exec", command).await;
    server.tag().alive(3).await;
    client.cut().await;
    server.tag().alive(2).await;
}

#[tokio::test]
async fn taken_over_connection_ends_its_processes() {
    let server = unsandboxed_outpost().start().await;
    let client = server.connect().await;
    let introduction = json!({"clientName": "x", "capabilities": {"experimentalApi": true}});
    let session = client.call("initialize", introduction).await["sessionId"].clone();
    Dialect::Spawn
        .begin(&client, "p", "exec sleep 1000", json!({"timeoutMs": null}))
        .await;
    server.tag().alive(2).await;
    let second = server.connect().await;
    let takeover = json!({"clientName": "x", "resumeSessionId": session, "takeover": true});
    second.call("initialize", takeover).await;
    server.tag().alive(1).await;
}

#[tokio::test]
async fn end_of_input_leaves_no_process() {
    for dialect in [Dialect::Spawn, Dialect::Command] {
        let mut server = unsandboxed_outpost().on(Transport::Stdio).start().await;
        let client = server.connect().await;
        app_handshake(&client).await;
        populate(dialect, &server, &client).await;
        let since = Instant::now();
        client.end_input().await;
        assert_eq!(server.wait().await.code, Some(0));
        assert_eq!(server.tag().living(), [0; 0]);
        let took = since.elapsed();
        assert!(took < GONE_WITHIN, "{took:?}");
    }
}

#[tokio::test]
async fn server_shutdown_leaves_no_process() {
    for dialect in [Dialect::Spawn, Dialect::Command] {
        let mut server = unsandboxed_outpost().start().await;
        let client = server.connect().await;
        app_handshake(&client).await;
        populate(dialect, &server, &client).await;
        server.signal(rustix::process::Signal::TERM);
        assert_eq!(server.wait().await.code, Some(0));
        assert_eq!(server.tag().living(), [0; 0]);
    }
}
