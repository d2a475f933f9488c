//! Processes belong to the session, and the session outlives its connection for a while.

use outpost_testkit::{patience, programs, sh};

use crate::{outpost, ready_with};

#[tokio::test]
async fn processes_survive_their_connection() {
    let server = outpost().start().await;
    let client = server.client().await;
    let (go, done) = (server.folder().join("go"), server.folder().join("done"));
    let script = format!(
        "echo ready; while [ ! -e {} ]; do sleep 0.02; done; echo written > {}; exec sleep 1000",
        go.display(),
        done.display()
    );
    client.start(sh("p", &script)).await;
    client.sees("p", "ready").await;
    client.cut().await;
    std::fs::write(&go, "").expect("a file");
    patience::seen("what it wrote afterwards", || {
        std::fs::read_to_string(&done)
            .ok()
            .filter(|text| text == "written\n")
    })
    .await;
}

#[tokio::test]
async fn processes_survive_a_connection_that_said_goodbye() {
    let server = outpost().start().await;
    let client = server.client().await;
    client.start(sh("p", "echo ready; exec sleep 1000")).await;
    client.sees("p", "ready").await;
    client.close().await;
    server.client().await.is_alive().await;
    assert_eq!(
        server.mark().living().len(),
        2,
        "the server and the process"
    );
}

#[tokio::test]
async fn when_its_time_is_over_the_session_ends_with_all_its_trees() {
    let (server, client) = ready_with(&["--session-ttl", "300ms"]).await;
    let scripts = [
        "echo ready; exec sleep 1000",
        programs::LEAVES_ITS_GROUP,
        programs::DAEMON,
        programs::HOLDS_THE_PIPE,
        programs::FORKS_AND_LEAVES,
    ];
    for (n, script) in scripts.iter().enumerate() {
        let id = format!("p{n}");
        client.start(sh(&id, script)).await;
        client.sees(&id, "ready").await;
    }
    let other = server.client().await;
    other.start(sh("kept", "exec sleep 1000")).await;
    server.mark().alive(1 + 1 + 2 + 2 + 1 + 1 + 1).await;
    client.cut().await;
    // The server, and what belongs to the other session.
    server.mark().alive(2).await;
    other.end("kept").await;
}

#[tokio::test]
async fn when_its_time_is_over_processes_are_asked_before_they_are_killed() {
    let (server, client) = ready_with(&["--session-ttl", "100ms"]).await;
    let file = server.folder().join("last words");
    let script = format!(
        "trap '' HUP; trap 'echo bye > \"{}\"; exit 0' TERM; echo ready; \
         while :; do sleep 0.02; done",
        file.display()
    );
    client.start(sh("polite", &script)).await;
    client.sees("polite", "ready").await;
    client.start(sh("stubborn", programs::IGNORES_TERM)).await;
    client.sees("stubborn", "ready").await;
    client.cut().await;
    server.mark().alive(1).await;
    let words = std::fs::read_to_string(&file).expect("last words");
    assert_eq!(words, "bye\n");
}
