//! A connection that is not read while a request waits for admission.

use std::time::Duration;

use outpost_rpc::Received;
use outpost_server::{Server, Settings};
use serde_json::json;
use tokio::time::Instant;

use crate::peer::{Peer, server};

/// Opens a session with a process, and blocks its connection: a request waits for the bytes
/// of a long poll.
async fn blocked_connection(server: &Server) -> (Peer, String) {
    let mut peer = Peer::connect(server);
    let session = peer.initialize(json!({"clientName": "t"})).await;
    let sleeps = json!({"processId": "p", "argv": ["sleep", "1000"], "cwd": "file:///", "env": {}});
    let started = peer.call("process/start", sleeps).await;
    assert_eq!(started["result"]["processId"], "p", "{started}");
    let pad = "x".repeat(900);
    let poll = json!({"processId": "p", "waitMs": 100_000_000, "pad": pad});
    peer.send(&json!({"id": "poll", "method": "process/read", "params": poll}))
        .await;
    peer.call("environment/status", json!({})).await;
    let list = json!({"id": "list", "method": "process/list", "params": {"pad": pad}});
    peer.send(&list).await;
    (peer, session)
}

fn server_with_small_budget(admission_timeout: Duration) -> Server {
    server(Settings {
        in_flight_bytes: 1500,
        admission_timeout,
        // Paused time auto-advances while the process is started.
        silence_timeout: Duration::from_secs(1_000_000),
        ..Settings::default()
    })
}

async fn end(peer: &mut Peer) {
    peer.send(&json!({"method": "initialized"})).await;
    let ended = peer
        .call("process/terminate", json!({"processId": "p"}))
        .await;
    assert_eq!(ended["result"]["running"], true);
}

#[tokio::test(start_paused = true)]
async fn takeover_ends_a_blocked_connection() {
    let server = server_with_small_budget(Duration::from_secs(1_000_000));
    let (mut old, session) = blocked_connection(&server).await;
    let mut new = Peer::connect(&server);
    let start = Instant::now();
    let resume = json!({"resumeSessionId": session, "takeover": true});
    let resumed = new.call("initialize", resume).await;
    assert_eq!(resumed["result"]["sessionId"], session.as_str());
    let rejected = old.message().await;
    assert_eq!(rejected["id"], "poll");
    assert_eq!(rejected["error"]["code"], -32600);
    assert!(matches!(
        old.received().await,
        Some(Received::Close(Some(4001), _))
    ));
    let took = start.elapsed();
    assert!(took <= Duration::from_secs(1), "{took:?}");
    end(&mut new).await;
}

#[tokio::test(start_paused = true)]
async fn lost_connection_is_noticed_after_the_admission_timeout() {
    let server = server_with_small_budget(Settings::default().admission_timeout);
    let (old, session) = blocked_connection(&server).await;
    drop(old);
    let mut new = Peer::connect(&server);
    let resume = json!({"resumeSessionId": session});
    // sleep: virtual time, after which the connection is read again
    tokio::time::sleep(Settings::default().admission_timeout + Duration::from_millis(1)).await;
    let resumed = new.call("initialize", resume).await;
    assert_eq!(resumed["result"]["sessionId"], session.as_str());
    end(&mut new).await;
}

#[tokio::test(start_paused = true)]
async fn request_without_room_is_rejected_and_the_connection_goes_on() {
    let server = server_with_small_budget(Settings::default().admission_timeout);
    let (mut peer, _session) = blocked_connection(&server).await;
    let start = Instant::now();
    let rejected = peer.message().await;
    assert_eq!(rejected["id"], "list");
    assert_eq!(rejected["error"]["code"], -32001, "{rejected}");
    assert_eq!(start.elapsed(), Settings::default().admission_timeout);
    end(&mut peer).await;
}
