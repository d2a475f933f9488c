//! What may be said when.

use outpost_server::Settings;
use serde_json::json;

use crate::peer::{Peer, server};

#[tokio::test(start_paused = true)]
async fn errors_follow_the_order_on_the_wire() {
    let server = server(Settings::default());
    let mut peer = Peer::connect(&server);
    // All in the pipe before the first is answered.
    peer.send(&json!({"id": 1, "method": "environment/status"}))
        .await;
    peer.send(&json!({"id": 2, "method": "initialize", "params": {"clientName": "t"}}))
        .await;
    peer.send(&json!({"id": 3, "method": "environment/status"}))
        .await;
    peer.send(&json!({"method": "initialized"})).await;
    peer.send(&json!({"id": 4, "method": "environment/status"}))
        .await;
    let before = peer.message().await;
    assert_eq!(
        before["error"]["message"],
        "client must call initialize before using environment status methods"
    );
    assert!(peer.message().await["result"]["sessionId"].is_string());
    let between = peer.message().await;
    assert_eq!(
        between["error"]["message"],
        "client must send initialized before using environment status methods"
    );
    assert_eq!(peer.message().await["result"]["status"], "ready");
}

#[tokio::test(start_paused = true)]
async fn a_failed_initialize_may_be_tried_again() {
    let server = server(Settings::default());
    let mut peer = Peer::connect(&server);
    let refused = peer
        .call("initialize", json!({"resumeSessionId": "nonsense"}))
        .await;
    assert_eq!(refused["error"]["code"], -32600);
    assert_eq!(refused["error"]["message"], "unknown session id nonsense");
    peer.initialize(json!({"clientName": "t"})).await;
    let again = peer
        .call(
            "initialize",
            json!({"clientInfo": {"name": "t", "version": "1"}}),
        )
        .await;
    assert_eq!(again["error"]["message"], "Already initialized");
}

#[tokio::test(start_paused = true)]
async fn complaints_are_not_answered_with_complaints() {
    let server = server(Settings::default());
    let mut peer = Peer::connect(&server);
    peer.send(&json!({"id": -1, "error": {"code": -32600, "message": "what?"}}))
        .await;
    peer.send(&json!({"id": 9, "result": {}})).await;
    let answer = peer.message().await;
    assert_eq!(
        answer["error"]["message"],
        "unexpected response to request id 9"
    );
    assert_eq!(answer["id"], -1);
}
