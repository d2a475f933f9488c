//! The end of a server on standard input and output.

use std::time::{Duration, Instant};

use outpost_testkit::{Client, Server, Transport, programs, sh};
use rustix::process::Signal;
use serde_json::json;

use crate::outpost;

async fn serving() -> (Server, Client) {
    let server = outpost().on(Transport::Stdio).start().await;
    let client = server.client().await;
    (server, client)
}

#[tokio::test]
async fn the_end_of_input_ends_everything() {
    let (mut server, client) = serving().await;
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
    client.start(sh("daemon", programs::LEAVES_ITS_GROUP)).await;
    client.sees("daemon", "ready").await;
    let since = Instant::now();
    client.end_input().await;
    let ended = server.ended().await;
    let took = since.elapsed();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(server.mark().living(), [0; 0]);
    assert_eq!(std::fs::read_to_string(&file).expect("last words"), "bye\n");
}

#[tokio::test]
async fn the_end_of_input_ends_at_once_what_has_nothing_to_do() {
    let (mut server, client) = serving().await;
    client.run(sh("p", "echo done")).await;
    let since = Instant::now();
    client.end_input().await;
    assert_eq!(server.ended().await.code, Some(0));
    let took = since.elapsed();
    assert!(took < Duration::from_millis(1500), "{took:?}");
}

#[tokio::test]
async fn requests_before_the_end_of_input_are_answered() {
    let (mut server, client) = serving().await;
    let status = client.request("environment/status", json!({})).await;
    let garbage = "not json";
    client.send_text(garbage).await;
    let info = client.request("environment/info", json!({})).await;
    client.end_input().await;
    assert!(client.answer(status).await.is_ok());
    assert!(client.answer(info).await.is_ok());
    client.unasked(0).await;
    assert_eq!(server.ended().await.code, Some(0));
}

#[tokio::test]
async fn a_signal_ends_it_while_its_input_is_open() {
    for signal in [Signal::TERM, Signal::INT] {
        let (mut server, client) = serving().await;
        client.start(sh("p", "echo ready; exec sleep 1000")).await;
        client.sees("p", "ready").await;
        let since = Instant::now();
        server.signal(signal);
        let ended = server.ended().await;
        let took = since.elapsed();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(
            took < Duration::from_millis(1500),
            "nothing to wait for: {took:?}"
        );
        assert_eq!(server.mark().living(), [0; 0]);
        client.goodbye().await;
    }
}

#[tokio::test]
async fn a_session_that_is_taken_over_from_stdio_does_not_take_the_server_along() {
    let launch = outpost().on(Transport::Stdio).listen("ws://127.0.0.1:0");
    let mut server = launch.start().await;
    let old = server.connect().await;
    let session = old.shake_hands().await["sessionId"].clone();
    old.start(sh("p", "echo ready; exec sleep 1000")).await;
    old.sees("p", "ready").await;
    let poll = json!({"processId": "p", "afterSeq": 1, "waitMs": 600_000});
    let poll = old.request("process/read", poll).await;

    let url = server.urls()[0].clone();
    let new = server.connect_to(&url).await;
    new.take_over(&session).await;
    let refused = old.answer(poll).await.unwrap_err();
    assert_eq!(
        refused.parts(),
        (-32600, "session has been resumed by another connection")
    );
    // The old client sees the end of its output, the new one has the session.
    old.goodbye().await;
    for _ in 0..3 {
        assert_eq!(new.listed("p").await.expect("it runs")["state"], "running");
    }
    // What the old one still sends is no reason to end; the end of its input is.
    old.send_text("{}").await;
    new.is_alive().await;
    old.end_input().await;
    assert_eq!(server.ended().await.code, Some(0));
    assert_eq!(server.mark().living(), [0; 0]);
}

#[tokio::test]
async fn an_output_that_nobody_reads_any_more_ends_it() {
    let (mut server, client) = serving().await;
    client.start(sh("p", "echo ready; exec sleep 1000")).await;
    client.sees("p", "ready").await;
    client.cut().await;
    assert_eq!(server.ended().await.code, Some(0));
    assert_eq!(server.mark().living(), [0; 0]);
}
