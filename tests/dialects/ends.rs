//! How a process ends: by its time, by a kill, with its connection.

use std::time::{Duration, Instant};

use outpost_testkit::{Client, Server, Transport, programs};
use serde_json::json;

use super::face::{Face, everywhere, introduce};
use crate::free;

/// What the host has best, and what there is everywhere.
const KINDS: [&str; 2] = ["auto", "keeper"];
/// How long what belongs to a connection may live on without it.
const GONE_WITHIN: Duration = Duration::from_secs(3);

#[tokio::test]
async fn when_the_time_is_over_the_tree_is_killed_and_the_code_is_124() {
    everywhere(async |face, server, client| {
        for more in [json!({}), json!({"tty": true})] {
            let mut more = more;
            more["timeoutMs"] = json!(300);
            let script = "trap '' TERM HUP; sleep 1000 & setsid sleep 1000 & exec sleep 1000";
            let begun = Instant::now();
            let outcome = face.run(client, "p", script, more).await;
            let took = begun.elapsed();
            assert!(took >= Duration::from_millis(290), "{took:?}");
            assert_eq!(outcome.exit_code, 124);
            server.mark().alive(1).await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_it_wrote_in_time_is_told() {
    everywhere(async |face, _, client| {
        let script = "echo said; exec sleep 1000";
        let outcome = face
            .run(client, "p", script, json!({"timeoutMs": 1000}))
            .await;
        assert_eq!((outcome.exit_code, &*outcome.stdout), (124, "said\n"));
        let outcome = face
            .run(client, "p", "exec sleep 1000", json!({"timeoutMs": 0}))
            .await;
        assert_eq!(outcome.exit_code, 124);
        for _ in 0..10 {
            let outcome = face
                .run(client, "p", "exit 0", json!({"timeoutMs": 0}))
                .await;
            assert_eq!(outcome.exit_code, 124, "no time at all is always over");
        }
    })
    .await;
}

#[tokio::test]
async fn a_kill_ends_the_whole_tree_and_shows_in_the_code() {
    everywhere(async |face, server, client| {
        for script in [
            programs::IGNORES_TERM,
            programs::DAEMON,
            programs::LEAVES_ITS_GROUP,
        ] {
            let more = json!({"streamStdoutStderr": true});
            let run = face.begin(client, "p", script, more).await;
            face.sees(client, "p", "ready").await;
            let kill = face.about("p", json!({}));
            assert_eq!(client.call(face.kill(), kill).await, json!({}));
            assert_eq!(run.end(client).await.exit_code, 137);
            server.mark().alive(1).await;
        }
    })
    .await;
}

#[tokio::test]
async fn who_has_exited_and_is_not_over_yet_is_no_longer_running() {
    everywhere(async |face, _, client| {
        let more = json!({"streamStdoutStderr": true, "streamStdin": true});
        let run = face
            .begin(client, "p", "sleep 1000 & echo ready", more)
            .await;
        face.sees(client, "p", "ready").await;
        let expected = match face {
            Face::Spawn => "process \"p\" is no longer running",
            Face::Command => "command/exec \"p\" is no longer running",
        };
        // Until its exit is known it is killed like any other, so it is asked for what does no harm.
        let error = loop {
            let params = face.about("p", json!({"deltaBase64": ""}));
            if let Err(error) = client.try_call(face.write(), params).await {
                break error;
            }
        };
        assert_eq!(error.parts(), (-32600, expected));
        let error = client.fails(face.kill(), face.about("p", json!({}))).await;
        assert_eq!(error.parts(), (-32600, expected));
        assert!(!run.is_over(client));
    })
    .await;
}

/// Starts processes of all kinds, each with more of its own; says how many live then.
async fn populate(face: Face, server: &Server, client: &Client) -> usize {
    let scripts = [
        (programs::IGNORES_TERM, 1),
        (programs::DAEMON, 2),
        (programs::LEAVES_ITS_GROUP, 2),
        (programs::LEAVES_A_DAEMON, 1),
        (programs::HOLDS_THE_PIPE, 1),
    ];
    let mut count = 1;
    for (number, (script, alive)) in scripts.into_iter().enumerate() {
        let id = format!("{face:?}{number}");
        let more = match face {
            Face::Spawn => json!({"streamStdoutStderr": true, "timeoutMs": null}),
            Face::Command => json!({"streamStdoutStderr": true, "disableTimeout": true}),
        };
        face.begin(client, &id, script, more).await;
        face.sees(client, &id, "ready").await;
        count += alive;
        server.mark().alive(count).await;
    }
    count
}

#[tokio::test]
async fn a_closed_connection_leaves_no_process() {
    for kind in KINDS {
        for face in [Face::Spawn, Face::Command] {
            for rudely in [false, true] {
                let server = free().args(&["--trees", kind]).start().await;
                let client = server.connect().await;
                introduce(&client).await;
                let other = server.connect().await;
                introduce(&other).await;
                let others = other
                    .request(
                        "process/spawn",
                        json!({
                            "command": ["sleep", "1000"], "processHandle": "o", "cwd": "/",
                        }),
                    )
                    .await;
                other.answer(others).await.expect("it starts");
                server.mark().alive(2).await;
                let kill = json!({"processHandle": "o"});
                other.call("process/kill", kill).await;
                server.mark().alive(1).await;
                populate(face, &server, &client).await;
                let since = Instant::now();
                if rudely {
                    client.cut().await;
                } else {
                    client.close().await;
                }
                server.mark().alive(1).await;
                let took = since.elapsed();
                assert!(took < GONE_WITHIN, "{took:?}");
            }
        }
    }
}

#[tokio::test]
async fn what_others_run_stays() {
    let server = free().start().await;
    let client = server.connect().await;
    introduce(&client).await;
    let other = server.connect().await;
    introduce(&other).await;
    let spawn = Face::Spawn;
    let more = json!({"streamStdin": true});
    let run = spawn
        .begin(&other, "p", "read x; exit 8", more.clone())
        .await;
    spawn.begin(&client, "p", "read x", more).await;
    server.mark().alive(3).await;
    client.close().await;
    server.mark().alive(2).await;
    spawn.types(&other, "p", "\n").await;
    assert_eq!(run.end(&other).await.exit_code, 8);
}

#[tokio::test]
async fn what_belongs_to_the_session_outlives_the_connection_and_the_rest_does_not() {
    let server = free().start().await;
    let client = server.client().await;
    client
        .start(outpost_testkit::sh("p", "exec sleep 1000"))
        .await;
    let command = json!({"command": ["sleep", "1000"], "disableTimeout": true});
    client.request("command/exec", command).await;
    server.mark().alive(3).await;
    client.cut().await;
    server.mark().alive(2).await;
}

#[tokio::test]
async fn a_taken_over_connection_takes_its_own_along() {
    let server = free().start().await;
    let client = server.connect().await;
    let introduction = json!({"clientName": "x", "capabilities": {"experimentalApi": true}});
    let session = client.call("initialize", introduction).await["sessionId"].clone();
    Face::Spawn
        .begin(&client, "p", "exec sleep 1000", json!({"timeoutMs": null}))
        .await;
    server.mark().alive(2).await;
    let second = server.connect().await;
    let takeover = json!({"clientName": "x", "resumeSessionId": session, "takeover": true});
    second.call("initialize", takeover).await;
    server.mark().alive(1).await;
}

#[tokio::test]
async fn the_end_of_input_leaves_no_process() {
    for face in [Face::Spawn, Face::Command] {
        let mut server = free().on(Transport::Stdio).start().await;
        let client = server.connect().await;
        introduce(&client).await;
        populate(face, &server, &client).await;
        let since = Instant::now();
        client.end_input().await;
        assert_eq!(server.ended().await.code, Some(0));
        assert_eq!(server.mark().living(), [0; 0]);
        let took = since.elapsed();
        assert!(took < GONE_WITHIN, "{took:?}");
    }
}

#[tokio::test]
async fn the_end_of_the_server_leaves_no_process() {
    for face in [Face::Spawn, Face::Command] {
        let mut server = free().start().await;
        let client = server.connect().await;
        introduce(&client).await;
        populate(face, &server, &client).await;
        server.signal(rustix::process::Signal::TERM);
        assert_eq!(server.ended().await.code, Some(0));
        assert_eq!(server.mark().living(), [0; 0]);
    }
}
