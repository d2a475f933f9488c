//! Tests shutdown of a server on stdio.

use std::time::{Duration, Instant};

use outpost_testkit::{Client, Server, Transport, programs, sh};
use rustix::process::Signal;
use serde_json::json;

use crate::outpost;

async fn server_and_client() -> (Server, Client) {
    let server = outpost().on(Transport::Stdio).start().await;
    let client = server.client().await;
    (server, client)
}

#[tokio::test]
async fn end_of_input_ends_everything() {
    let (mut server, client) = server_and_client().await;
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
    client.start(sh("daemon", programs::LEAVES_ITS_GROUP)).await;
    client.wait_output("daemon", "ready").await;
    let since = Instant::now();
    client.end_input().await;
    let output = server.wait().await;
    let took = since.elapsed();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(server.tag().living(), [0; 0]);
    assert_eq!(std::fs::read_to_string(&file).expect("stderr"), "bye\n");
}

#[tokio::test]
async fn end_of_input_exits_at_once_when_idle() {
    let (mut server, client) = server_and_client().await;
    client.run(sh("p", "echo done")).await;
    let since = Instant::now();
    client.end_input().await;
    assert_eq!(server.wait().await.code, Some(0));
    let took = since.elapsed();
    assert!(took < Duration::from_millis(1500), "{took:?}");
}

#[tokio::test]
async fn requests_before_the_end_of_input_are_answered() {
    let (mut server, client) = server_and_client().await;
    let status = client.request("environment/status", json!({})).await;
    let garbage = "not json";
    client.send_text(garbage).await;
    let info = client.request("environment/info", json!({})).await;
    client.end_input().await;
    assert!(client.response(status).await.is_ok());
    assert!(client.response(info).await.is_ok());
    client.error_without_id(0).await;
    assert_eq!(server.wait().await.code, Some(0));
}

#[tokio::test]
async fn signal_ends_it_with_open_input() {
    for signal in [Signal::TERM, Signal::INT] {
        let (mut server, client) = server_and_client().await;
        client.start(sh("p", "echo ready; exec sleep 1000")).await;
        client.wait_output("p", "ready").await;
        let since = Instant::now();
        server.signal(signal);
        let output = server.wait().await;
        let took = since.elapsed();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        assert!(
            took < Duration::from_millis(1500),
            "nothing to wait for: {took:?}"
        );
        assert_eq!(server.tag().living(), [0; 0]);
        client.connection_end().await;
    }
}

#[tokio::test]
async fn taken_over_stdio_session_does_not_end_the_server() {
    let launch = outpost().on(Transport::Stdio).listen("ws://127.0.0.1:0");
    let mut server = launch.start().await;
    let old = server.connect().await;
    let session = old.handshake().await["sessionId"].clone();
    old.start(sh("p", "echo ready; exec sleep 1000")).await;
    old.wait_output("p", "ready").await;
    let poll = json!({"processId": "p", "afterSeq": 1, "waitMs": 600_000});
    let poll = old.request("process/read", poll).await;
    // A request that was not read before the takeover gets no response.
    old.check_alive().await;

    let url = server.urls()[0].clone();
    let new = server.connect_to(&url).await;
    new.take_over(&session).await;
    let rejected = old.response(poll).await.unwrap_err();
    assert_eq!(
        rejected.parts(),
        (-32600, "session has been resumed by another connection")
    );
    // The old client's output is closed, and the new one has the session.
    old.connection_end().await;
    for _ in 0..3 {
        assert_eq!(new.listed("p").await.expect("it runs")["state"], "running");
    }
    // More input on stdin doesn't end the server; the end of stdin does.
    old.send_text("{}").await;
    new.check_alive().await;
    old.end_input().await;
    assert_eq!(server.wait().await.code, Some(0));
    assert_eq!(server.tag().living(), [0; 0]);
}

#[tokio::test]
async fn closed_stdout_ends_it() {
    let (mut server, client) = server_and_client().await;
    client.start(sh("p", "echo ready; exec sleep 1000")).await;
    client.wait_output("p", "ready").await;
    client.cut().await;
    assert_eq!(server.wait().await.code, Some(0));
    assert_eq!(server.tag().living(), [0; 0]);
}
