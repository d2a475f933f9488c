//! Pings, silence and probes.

use std::time::Duration;

use outpost_rpc::Received;
use outpost_server::Settings;
use serde_json::json;
use tokio::time::Instant;

use crate::peer::{Peer, server};

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_pinged_and_then_dropped() {
    let server = server(Settings::default());
    let mut peer = Peer::connect(&server);
    let start = Instant::now();
    assert!(matches!(peer.received().await, Some(Received::Ping(_))));
    assert_eq!(start.elapsed().as_secs(), 30, "a ping every 30 s");
    loop {
        match peer.received().await {
            Some(Received::Ping(_)) => {}
            Some(Received::Close(_)) | None => break,
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(start.elapsed().as_secs(), 60, "nothing for 60 s closes");
}

#[tokio::test(start_paused = true)]
async fn any_byte_is_life() {
    let server = server(Settings::default());
    let mut peer = Peer::connect(&server);
    for _ in 0..5 {
        tokio::time::advance(Duration::from_secs(50)).await;
        peer.send_text("garbage").await;
        assert_eq!(peer.message().await["id"], -1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_let_go_by_a_link_that_does_not_stir() {
    let server = server(Settings::default());
    let mut half_open = Peer::connect(&server);
    let session = half_open.initialize(json!({"clientName": "t"})).await;
    let mut next = Peer::connect(&server);
    let start = Instant::now();
    let resume = json!({"clientName": "t", "resumeSessionId": session});
    let refused = next.call("initialize", resume.clone()).await;
    assert_eq!(refused["error"]["code"], -32010);
    assert_eq!(
        refused["error"]["message"],
        format!("session {session} is already attached to another connection")
    );
    loop {
        tokio::time::advance(Duration::from_millis(100)).await;
        let answer = next.call("initialize", resume.clone()).await;
        if answer["result"]["sessionId"] == session.as_str() {
            break;
        }
        assert_eq!(answer["error"]["code"], -32010, "{answer}");
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "left behind within 5 s"
        );
    }
    assert!(start.elapsed() >= Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_link_that_stirs_keeps_its_session() {
    let server = server(Settings::default());
    let mut alive = Peer::connect(&server);
    let session = alive.initialize(json!({"clientName": "t"})).await;
    let mut other = Peer::connect(&server);
    let resume = json!({"clientName": "t", "resumeSessionId": session});
    for _ in 0..10 {
        let refused = other.call("initialize", resume.clone()).await;
        assert_eq!(refused["error"]["code"], -32010);
        tokio::time::advance(Duration::from_secs(1)).await;
        let status = alive.call("environment/status", json!({})).await;
        assert_eq!(status["result"]["status"], "ready");
    }
}

/// Beats that come just behind a ping were on their way before the link broke.
#[tokio::test(start_paused = true)]
async fn the_last_words_of_a_link_do_not_keep_its_session() {
    let server = server(Settings::default());
    let mut half_open = Peer::connect(&server);
    let session = half_open.initialize(json!({"clientName": "t"})).await;
    let mut next = Peer::connect(&server);
    let resume = json!({"clientName": "t", "resumeSessionId": session});
    let start = Instant::now();
    let refused = next.call("initialize", resume.clone()).await;
    assert_eq!(refused["error"]["code"], -32010);
    half_open.call("environment/status", json!({})).await;
    loop {
        tokio::time::advance(Duration::from_millis(100)).await;
        let answer = next.call("initialize", resume.clone()).await;
        if answer["result"]["sessionId"] == session.as_str() {
            break;
        }
        assert_eq!(answer["error"]["code"], -32010, "{answer}");
        let waited = start.elapsed();
        assert!(waited < Duration::from_secs(5), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_on_a_link_that_does_not_stir_is_told_why_it_ends() {
    // Time runs off while a process is started, since nobody here waits for it.
    let server = server(Settings {
        silence: Duration::from_secs(1_000_000),
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
    let refused = half_open.message().await;
    assert_eq!(refused["id"], "poll");
    assert_eq!(
        refused["error"],
        json!({"code": -32600, "message": "session has been resumed by another connection"})
    );
    // Nobody had taken the session when it was closed, so its client may come
    // back for it.
    assert_eq!(
        half_open.received().await,
        Some(Received::Close(Some(1000)))
    );
    next.send(&json!({"method": "initialized"})).await;
    let ended = next
        .call("process/terminate", json!({"processId": "p"}))
        .await;
    assert_eq!(ended["result"]["running"], true);
}
