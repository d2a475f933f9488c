//! Tests that processes belong to the session, which outlives its connection by a lease.

use outpost_testkit::{deadline, programs, sh};

use crate::{outpost, ready_with};

#[tokio::test]
async fn processes_survive_a_lost_connection() {
    let server = outpost().start().await;
    let client = server.client().await;
    let (go, done) = (server.dir().join("go"), server.dir().join("done"));
    let script = format!(
        "echo ready; while [ ! -e {} ]; do sleep 0.02; done; echo written > {}; exec sleep 1000",
        go.display(),
        done.display()
    );
    client.start(sh("p", &script)).await;
    client.wait_output("p", "ready").await;
    client.cut().await;
    std::fs::write(&go, "").expect("a file");
    deadline::poll_until("what it wrote afterwards", || {
        std::fs::read_to_string(&done)
            .ok()
            .filter(|text| text == "written\n")
    })
    .await;
}

#[tokio::test]
async fn processes_survive_a_closed_connection() {
    let server = outpost().start().await;
    let client = server.client().await;
    client.start(sh("p", "echo ready; exec sleep 1000")).await;
    client.wait_output("p", "ready").await;
    client.close().await;
    server.client().await.check_alive().await;
    assert_eq!(server.tag().living().len(), 2, "the server and the process");
}

#[tokio::test]
async fn expired_session_ends_with_all_its_trees() {
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
        client.wait_output(&id, "ready").await;
    }
    let other = server.client().await;
    other.start(sh("kept", "exec sleep 1000")).await;
    server.tag().alive(1 + 1 + 2 + 2 + 1 + 1 + 1).await;
    client.cut().await;
    // The server, and the process of the other session.
    server.tag().alive(2).await;
    other.terminate_and_wait("kept").await;
}

#[tokio::test]
async fn expired_processes_are_terminated_before_they_are_killed() {
    let (server, client) = ready_with(&["--session-ttl", "100ms"]).await;
    let file = server.dir().join("last words");
    let script = format!(
        "trap '' HUP; trap 'echo bye > \"{}\"; exit 0' TERM; echo ready; \
         while :; do sleep 0.02; done",
        file.display()
    );
    client.start(sh("polite", &script)).await;
    client.wait_output("polite", "ready").await;
    client.start(sh("stubborn", programs::IGNORES_TERM)).await;
    client.wait_output("stubborn", "ready").await;
    client.cut().await;
    server.tag().alive(1).await;
    let message = std::fs::read_to_string(&file).expect("stderr");
    assert_eq!(message, "bye\n");
}
