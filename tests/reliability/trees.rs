//! Programs that misbehave, and every way to end them: nothing is left.

use outpost_testkit::{Client, Server, programs, sh};
use serde_json::json;

use crate::outpost;

const MISBEHAVING: [(&str, &str); 8] = [
    ("ignores TERM", programs::IGNORES_TERM),
    ("holds the pipe", programs::HOLDS_THE_PIPE),
    ("forks and leaves", programs::FORKS_AND_LEAVES),
    ("a daemon", programs::DAEMON),
    ("leaves a daemon", programs::LEAVES_A_DAEMON),
    ("leaves its group", programs::LEAVES_ITS_GROUP),
    ("forks when it is asked to end", FORKS_WHEN_ASKED),
    ("a small fork bomb", FORK_BOMB),
];

/// Starts another one of its kind, in a session of its own, when it is asked to end.
const FORKS_WHEN_ASKED: &str = "trap 'setsid sleep 1000 & exit 0' TERM HUP; echo ready; \
                                while :; do sleep 0.01; done";

/// Doubles until there are 64, each in a session of its own and with its parent gone.
const FORK_BOMB: &str = "bomb() { [ $1 -gt 5 ] && exec sleep 1000; bomb $(($1 + 1)) & bomb $(($1 + 1)) & \
                         [ $1 -gt 0 ] || { echo ready; sleep 1000; }; }; bomb 0";

/// How everything is started anew for each way to end it.
async fn all_of_them(server: &Server) -> Client {
    let client = server.client().await;
    for (name, script) in MISBEHAVING {
        client.start(sh(name, script)).await;
        client.sees(name, "ready").await;
    }
    client
}

async fn nothing_left(server: &Server, helpers: usize) {
    server.mark().alive(1 + helpers).await;
}

/// For each way of keeping trees that this host has.
async fn with_each_kind(test: impl AsyncFn(&Server, usize)) {
    for (kind, helpers) in [("auto", 0), ("keeper", 1)] {
        let server = outpost()
            .args(&["--trees", kind, "--session-ttl", "100ms"])
            .start()
            .await;
        let helpers = match server.mark().living().len() {
            1 => 0,
            _ => helpers.max(1),
        };
        test(&server, helpers).await;
    }
}

#[tokio::test]
async fn terminate_leaves_nothing() {
    with_each_kind(async |server, helpers| {
        let client = all_of_them(server).await;
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
        let client = all_of_them(server).await;
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
async fn a_timeout_leaves_nothing() {
    with_each_kind(async |server, helpers| {
        let client = server.client().await;
        for (name, script) in [
            ("deaf", programs::IGNORES_TERM),
            ("daemon", programs::DAEMON),
            ("group", programs::LEAVES_ITS_GROUP),
            ("bomb", FORK_BOMB),
        ] {
            let start = sh(name, script).with("timeoutMs", 1000);
            client.start(start).await;
        }
        for name in ["deaf", "daemon", "group", "bomb"] {
            assert_eq!(client.closed(name).await.code(), 124);
        }
        nothing_left(server, helpers).await;
    })
    .await;
}

#[tokio::test]
async fn the_end_of_a_session_leaves_nothing() {
    with_each_kind(async |server, helpers| {
        let client = all_of_them(server).await;
        client.call("session/close", json!({})).await;
        nothing_left(server, helpers).await;
    })
    .await;
}

#[tokio::test]
async fn an_expired_session_leaves_nothing() {
    with_each_kind(async |server, helpers| {
        all_of_them(server).await.cut().await;
        nothing_left(server, helpers).await;
    })
    .await;
}

#[tokio::test]
async fn the_end_of_the_server_leaves_nothing() {
    for kind in ["auto", "keeper"] {
        let mut server = outpost().args(&["--trees", kind]).start().await;
        let _client = all_of_them(&server).await;
        server.signal(rustix::process::Signal::TERM);
        assert_eq!(server.ended().await.code, Some(0));
        server.mark().gone().await;
    }
}
