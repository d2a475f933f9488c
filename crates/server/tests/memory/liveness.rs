//! Pings, idle timeouts and probes.

use std::time::Duration;

use outpost_rpc::Received;
use outpost_server::Settings;
use serde_json::json;
use tokio::time::Instant;

use crate::peer::{Peer, server};

#[tokio::test(start_paused = true)]
async fn silent_peer_is_pinged_and_then_dropped() {
    let server = server(Settings::default());
    let mut peer = Peer::connect(&server);
    let start = Instant::now();
    assert!(matches!(peer.received().await, Some(Received::Ping(_))));
    assert_eq!(start.elapsed().as_secs(), 30, "a ping every 30 s");
    loop {
        match peer.received().await {
            Some(Received::Ping(_)) => {}
            Some(Received::Close(..)) | None => break,
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(start.elapsed().as_secs(), 60, "nothing for 60 s closes");
}

#[tokio::test(start_paused = true)]
async fn any_received_byte_keeps_the_connection_alive() {
    let server = server(Settings::default());
    let mut peer = Peer::connect(&server);
    for _ in 0..5 {
        tokio::time::advance(Duration::from_secs(50)).await;
        peer.send_text("garbage").await;
        assert_eq!(peer.message().await["id"], -1);
    }
}

#[tokio::test(start_paused = true)]
async fn half_open_connection_loses_its_session_to_a_resume() {
    let server = server(Settings::default());
    let mut half_open = Peer::connect(&server);
    let session = half_open.initialize(json!({"clientName": "t"})).await;
    let mut next = Peer::connect(&server);
    let start = Instant::now();
    let resume = json!({"clientName": "t", "resumeSessionId": session});
    let rejected = next.call("initialize", resume.clone()).await;
    assert_eq!(rejected["error"]["code"], -32010);
    assert_eq!(
        rejected["error"]["message"],
        format!("session {session} is already attached to another connection")
    );
    loop {
        tokio::time::advance(Duration::from_millis(100)).await;
        let response = next.call("initialize", resume.clone()).await;
        if response["result"]["sessionId"] == session.as_str() {
            break;
        }
        assert_eq!(response["error"]["code"], -32010, "{response}");
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "released within 5 s"
        );
    }
    assert!(start.elapsed() >= Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn live_connection_keeps_its_session() {
    let server = server(Settings::default());
    let mut alive = Peer::connect(&server);
    let session = alive.initialize(json!({"clientName": "t"})).await;
    let mut other = Peer::connect(&server);
    let resume = json!({"clientName": "t", "resumeSessionId": session});
    for _ in 0..10 {
        let rejected = other.call("initialize", resume.clone()).await;
        assert_eq!(rejected["error"]["code"], -32010);
        tokio::time::advance(Duration::from_secs(1)).await;
        let status = alive.call("environment/status", json!({})).await;
        assert_eq!(status["result"]["status"], "ready");
    }
}

/// Bytes that arrive just after the ping may have been sent before the link broke.
#[tokio::test(start_paused = true)]
async fn bytes_sent_before_the_break_do_not_keep_the_session() {
    let server = server(Settings::default());
    let mut half_open = Peer::connect(&server);
    let session = half_open.initialize(json!({"clientName": "t"})).await;
    let mut next = Peer::connect(&server);
    let resume = json!({"clientName": "t", "resumeSessionId": session});
    let start = Instant::now();
    let rejected = next.call("initialize", resume.clone()).await;
    assert_eq!(rejected["error"]["code"], -32010);
    half_open.call("environment/status", json!({})).await;
    loop {
        tokio::time::advance(Duration::from_millis(100)).await;
        let response = next.call("initialize", resume.clone()).await;
        if response["result"]["sessionId"] == session.as_str() {
            break;
        }
        assert_eq!(response["error"]["code"], -32010, "{response}");
        let waited = start.elapsed();
        assert!(waited < Duration::from_secs(5), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn long_poll_on_a_half_open_connection_is_answered() {
    // Paused time auto-advances while the process is started.
    let server = server(Settings {
        silence_timeout: Duration::from_secs(1_000_000),
        ..Settings::default()
    });
    let mut half_open = Peer::connect(&server);
    let session = half_open.initialize(json!({"clientName": "t"})).await;
    let sleeps = json!({"processId": "p", "argv": ["sleep", "1000"], "cwd": "file:///", "env": {}});
    let started = half_open.call("process/start", sleeps).await;
    assert_eq!(started["result"]["processId"], "p", "{started}");
    let poll = json!({"processId": "p", "waitMs": 600_000});
    let poll = json!({"id": "poll", "method": "process/read", "params": poll});
    half_open.send(&poll).await;
    half_open.call("environment/status", json!({})).await;
    let mut next = Peer::connect(&server);
    let resume = json!({"clientName": "t", "resumeSessionId": session});
    let start = Instant::now();
    while next.call("initialize", resume.clone()).await["result"].is_null() {
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    let waited = start.elapsed();
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    let rejected = half_open.message().await;
    assert_eq!(rejected["id"], "poll");
    assert_eq!(
        rejected["error"],
        json!({"code": -32600, "message": "session has been resumed by another connection",
               "data": {"kind": "sessionReplaced"}})
    );
    // The session was not taken over when the connection closed, so its client may resume it.
    assert!(matches!(
        half_open.received().await,
        Some(Received::Close(Some(1000), _))
    ));
    next.send(&json!({"method": "initialized"})).await;
    let ended = next
        .call("process/terminate", json!({"processId": "p"}))
        .await;
    assert_eq!(ended["result"]["running"], true);
}
