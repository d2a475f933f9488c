//! Order of the handshake.

use outpost_server::Settings;
use serde_json::json;

use crate::peer::{Peer, server};

#[tokio::test(start_paused = true)]
async fn errors_follow_the_order_on_the_wire() {
    let server = server(Settings::default());
    let mut peer = Peer::connect(&server);
    // All are sent before the first response is read.
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
async fn initialize_can_be_retried_after_a_failure() {
    let server = server(Settings::default());
    let mut peer = Peer::connect(&server);
    let rejected = peer
        .call("initialize", json!({"resumeSessionId": "nonsense"}))
        .await;
    assert_eq!(rejected["error"]["code"], -32600);
    assert_eq!(rejected["error"]["message"], "unknown session id nonsense");
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
async fn errors_from_the_client_are_not_answered() {
    let server = server(Settings::default());
    let mut peer = Peer::connect(&server);
    peer.send(&json!({"id": -1, "error": {"code": -32600, "message": "what?"}}))
        .await;
    peer.send(&json!({"id": 9, "result": {}})).await;
    let response = peer.message().await;
    assert_eq!(
        response["error"]["message"],
        "unexpected response to request id 9"
    );
    assert_eq!(response["id"], -1);
}

#[tokio::test(start_paused = true)]
async fn large_message_is_accepted_only_after_initialize() {
    let server = server(Settings::default());
    let mut peer = Peer::connect(&server);
    let pad = "x".repeat(64 * 1024);
    let large = json!({"id": 1, "method": "environment/status", "params": {"pad": pad}});
    peer.send(&large).await;
    let skipped = peer.message().await;
    assert_eq!(skipped["id"], 1, "{skipped}");
    let message = skipped["error"]["message"].as_str().unwrap_or_default();
    assert!(
        message.ends_with("message before initialize is larger than 65536 bytes"),
        "{message}"
    );
    peer.initialize(json!({"clientName": "t"})).await;
    peer.send(&large).await;
    assert_eq!(peer.message().await["result"]["status"], "ready");
}
