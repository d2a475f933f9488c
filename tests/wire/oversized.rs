//! A message over the limit is skipped and answered, and the connection goes on.

use outpost_testkit::{Client, RpcError, Server, Transport, frames};

use super::malformed::{ON_A_WEBSOCKET, ON_STDIO};
use crate::outpost;

const LIMIT: usize = 64 * 1024 * 1024;

/// What the server may need for a message at the limit, and something for itself.
const MEMORY_KIB: u64 = 112 * 1024;

/// A request of exactly so many bytes.
fn request_of(id: i64, bytes: usize) -> String {
    let head = format!(r#"{{"id":{id},"method":"environment/status","params":{{}},"pad":""#);
    let pad = "x".repeat(bytes - head.len() - 2);
    format!("{head}{pad}\"}}")
}

async fn over(transport: Transport) -> (Server, Client) {
    let server = outpost().on(transport).start().await;
    let client = server.client().await;
    (server, client)
}

async fn refused_and_alive(server: &Server, client: &Client, words: &str) {
    let error = RpcError::of(&client.unasked(0).await);
    assert_eq!(error.code, -32600);
    assert!(error.message.starts_with(words), "{}", error.message);
    client.is_alive().await;
    let peak = server.vitals().peak_rss_kib();
    assert!(peak < MEMORY_KIB, "the server took {peak} KiB");
}

#[tokio::test]
async fn a_frame_over_64_mib_is_skipped_and_answered() {
    let (server, client) = over(Transport::WebSocket).await;
    client.send_text(&request_of(1001, LIMIT + 1)).await;
    client.send_text(&request_of(1002, 200)).await;
    assert!(client.answer(1002).await.is_ok());
    refused_and_alive(&server, &client, ON_A_WEBSOCKET).await;
    assert!(!client.is_answered(1001));
}

#[tokio::test]
async fn a_message_over_64_mib_in_many_frames_is_skipped_and_answered_once() {
    let (server, client) = over(Transport::Unix).await;
    let text = request_of(1001, LIMIT + 1024 * 1024);
    let pieces = text.as_bytes().chunks(LIMIT / 16);
    client.send_frames(frames::pieces(pieces)).await;
    refused_and_alive(&server, &client, ON_A_WEBSOCKET).await;
    assert_eq!(client.received().len(), 3, "initialize, the error, status");
}

#[tokio::test]
async fn a_line_over_64_mib_is_skipped_and_answered() {
    let (server, client) = over(Transport::Stdio).await;
    client.send_text(&request_of(1001, LIMIT + 1)).await;
    client.send_text(&request_of(1002, 200)).await;
    assert!(client.answer(1002).await.is_ok());
    refused_and_alive(&server, &client, ON_STDIO).await;
    assert!(!client.is_answered(1001));
}

#[tokio::test]
async fn a_message_of_exactly_64_mib_is_taken() {
    let (server, client) = over(Transport::WebSocket).await;
    client.send_text(&request_of(1001, LIMIT)).await;
    assert!(client.answer(1001).await.is_ok());
    let peak = server.vitals().peak_rss_kib();
    assert!(peak < MEMORY_KIB, "the server took {peak} KiB");
}
