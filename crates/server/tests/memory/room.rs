//! A connection that isn't read, because there is no room for what it sent.

use std::time::Duration;

use outpost_rpc::Received;
use outpost_server::{Server, Settings};
use serde_json::json;
use tokio::time::Instant;

use crate::peer::{Peer, server};

/// A session with a process, whose connection waits for room behind a long poll.
async fn waits_for_room(server: &Server) -> (Peer, String) {
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

fn small(room_within: Duration) -> Server {
    server(Settings {
        in_flight_bytes: 1500,
        room_within,
        // Time runs off while a process is started, since nobody here waits for it.
        silence: Duration::from_secs(1_000_000),
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
async fn it_hears_of_a_takeover() {
    let server = small(Duration::from_secs(1_000_000));
    let (mut old, session) = waits_for_room(&server).await;
    let mut new = Peer::connect(&server);
    let start = Instant::now();
    let resume = json!({"resumeSessionId": session, "takeover": true});
    let resumed = new.call("initialize", resume).await;
    assert_eq!(resumed["result"]["sessionId"], session.as_str());
    let refused = old.message().await;
    assert_eq!(refused["id"], "poll");
    assert_eq!(refused["error"]["code"], -32600);
    assert_eq!(old.received().await, Some(Received::Close(Some(4001))));
    let took = start.elapsed();
    assert!(took <= Duration::from_secs(1), "{took:?}");
    end(&mut new).await;
}

#[tokio::test(start_paused = true)]
async fn its_end_is_noticed_when_it_is_read_again() {
    let server = small(Settings::default().room_within);
    let (old, session) = waits_for_room(&server).await;
    drop(old);
    let mut new = Peer::connect(&server);
    let resume = json!({"resumeSessionId": session});
    // sleep: virtual time; at its end the connection has been read again
    tokio::time::sleep(Settings::default().room_within + Duration::from_millis(1)).await;
    let resumed = new.call("initialize", resume).await;
    assert_eq!(resumed["result"]["sessionId"], session.as_str());
    end(&mut new).await;
}

#[tokio::test(start_paused = true)]
async fn what_finds_no_room_is_refused_and_the_rest_goes_on() {
    let server = small(Settings::default().room_within);
    let (mut peer, _session) = waits_for_room(&server).await;
    let start = Instant::now();
    let refused = peer.message().await;
    assert_eq!(refused["id"], "list");
    assert_eq!(refused["error"]["code"], -32001, "{refused}");
    assert_eq!(start.elapsed(), Settings::default().room_within);
    end(&mut peer).await;
}
