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
            ("forks", FORKS_WHEN_ASKED),
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

#[tokio::test]
async fn an_exit_while_being_killed_is_one_end_and_leaves_nothing() {
    with_each_kind(async |server, helpers| {
        let client = server.client().await;
        for number in 0..60 {
            let id = format!("p{number}");
            // It exits by itself before, while or after it is killed.
            let script =
                "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo ready; read x; exit 3";
            client.start(sh(&id, script).stdin()).await;
            client.sees(&id, "ready").await;
            let write = client.request_write(&id, "\n", "w").await;
            for _ in 0..number % 4 {
                client.is_alive().await;
            }
            let terminate = json!({"processId": id, "tree": true});
            let terminate = client.request("process/terminate", terminate).await;
            assert!(client.answer(write).await.is_ok());
            assert!(client.answer(terminate).await.is_ok());
            let story = client.closed(&id).await;
            assert!([3, 137].contains(&story.code()), "{}", story.code());
        }
        nothing_left(server, helpers).await;
    })
    .await;
}

#[tokio::test]
async fn a_natural_exit_leaves_what_it_meant_to_until_its_session_ends() {
    with_each_kind(async |server, helpers| {
        let client = server.client().await;
        let mut left = Vec::new();
        for (id, start) in [("child", ""), ("daemon", "setsid")] {
            let script = format!("{start} sleep 1000 >/dev/null 2>&1 </dev/null & echo $!");
            let story = client.run(sh(id, &script)).await;
            assert_eq!(story.code(), 0);
            left.push(story.text().trim().parse::<i32>().expect("a number"));
        }
        // Somebody else's end has come and gone since.
        client.start(sh("other", "exec sleep 1000")).await;
        client.end("other").await;
        let living = server.mark().living();
        for pid in &left {
            assert!(living.contains(pid), "{pid} was meant to stay: {living:?}");
        }
        client.call("session/close", json!({})).await;
        nothing_left(server, helpers).await;
    })
    .await;
}
