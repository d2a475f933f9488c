//! Time that the server does not run. A jump of the paused clock looks like a stop: no timer
//! fires meanwhile.

use std::time::Duration;

use outpost_rpc::{FrameBuffer, Framing, Received, Role};
use outpost_server::{Server, Settings};
use serde_json::json;

use crate::{
    frozen_clock::FrozenClock,
    peer::{Peer, server},
};

/// Lets time pass in which the server runs.
async fn run_for(seconds: u64) {
    for _ in 0..seconds * 2 {
        tokio::time::advance(Duration::from_millis(500)).await;
        // The timers fire.
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }
}

async fn stop_for(seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
}

/// A server that measures stops, with a clock that the test advances.
async fn measuring() -> (Server, FrozenClock) {
    let clock = FrozenClock::new();
    let server = server(Settings::default());
    let measured = server.clone();
    tokio::spawn(async move { measured.measure_stops().await });
    run_for(1).await;
    (server, clock)
}

#[tokio::test(start_paused = true)]
async fn healthy_peer_survives_a_stop() {
    let (server, _clock) = measuring().await;
    let mut peer = Peer::connect(&server);
    peer.initialize(json!({"clientName": "t"})).await;
    run_for(25).await;
    stop_for(40).await;
    run_for(2).await;
    // It answers the ping that the server sends now.
    assert!(matches!(peer.received().await, Some(Received::Ping(_))));
    let status = peer.call("environment/status", json!({})).await;
    assert_eq!(status["result"]["status"], "ready");
}

#[tokio::test(start_paused = true)]
async fn silent_peer_is_dropped_after_a_stop() {
    let (server, _clock) = measuring().await;
    let mut peer = Peer::connect(&server);
    peer.initialize(json!({"clientName": "t"})).await;
    run_for(25).await;
    stop_for(40).await;
    run_for(65).await;
    loop {
        match peer.received().await {
            Some(Received::Ping(_)) => {}
            Some(Received::Close(..)) | None => break,
            other => panic!("unexpected {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lease_does_not_run_during_a_stop() {
    for (before, after, resumable) in [(10, 10, true), (10, 25, false)] {
        let (server, _clock) = measuring().await;
        let mut first = Peer::connect(&server);
        let session = first.initialize(json!({"clientName": "t"})).await;
        drop(first);
        run_for(before).await;
        stop_for(40).await;
        run_for(after).await;
        let mut second = Peer::connect(&server);
        let resume = json!({"clientName": "t", "resumeSessionId": session});
        let response = second.call("initialize", resume).await;
        assert_eq!(response["result"].is_object(), resumable, "{response}");
    }
}

#[tokio::test(start_paused = true)]
async fn probe_does_not_count_a_stop() {
    let (server, _clock) = measuring().await;
    let mut alive = Peer::connect(&server);
    let session = alive.initialize(json!({"clientName": "t"})).await;
    let mut other = Peer::connect(&server);
    let resume = json!({"clientName": "t", "resumeSessionId": session});
    let rejected = other.call("initialize", resume).await;
    assert_eq!(rejected["error"]["code"], -32010);
    stop_for(40).await;
    run_for(1).await;
    let status = alive.call("environment/status", json!({})).await;
    assert_eq!(status["result"]["status"], "ready");
}

#[tokio::test(start_paused = true)]
async fn incomplete_message_survives_a_stop() {
    let (server, _clock) = measuring().await;
    let mut peer = Peer::connect(&server);
    peer.initialize(json!({"clientName": "t"})).await;
    let request = json!({"id": "late", "method": "environment/status", "params": {}}).to_string();
    let mut frame = FrameBuffer::new(Framing::WebSocket(Role::Client));
    frame.message(request.as_bytes());
    let (begun, rest) = frame.as_bytes().split_at(20);
    peer.try_send_raw(begun).await.expect("the server reads");
    run_for(10).await;
    stop_for(40).await;
    run_for(2).await;
    peer.try_send_raw(rest).await.expect("the server reads");
    let status = peer.message().await;
    assert_eq!(status["id"], "late", "{status}");
}
