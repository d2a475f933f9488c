//! Tests that an oversized message is skipped with an error and the connection continues.

use outpost_testkit::{Client, Server, Transport, frames};

use super::malformed::{STDIO_PARSE_ERROR, WEBSOCKET_PARSE_ERROR};
use crate::outpost;

const LIMIT: usize = 64 * 1024 * 1024;

/// The memory that the server may use: a message at the limit, and its own.
const MEMORY_KIB: u64 = 112 * 1024;

/// A request of exactly this many bytes.
fn request_of(id: i64, bytes: usize) -> String {
    let head = format!(r#"{{"id":{id},"method":"environment/status","params":{{}},"pad":""#);
    let pad = "x".repeat(bytes - head.len() - 2);
    format!("{head}{pad}\"}}")
}

async fn server_and_client(transport: Transport) -> (Server, Client) {
    let server = outpost().on(transport).start().await;
    let client = server.client().await;
    (server, client)
}

/// Checks that the skipped request 1001 was answered.
async fn check_error_and_alive(server: &Server, client: &Client, message: &str) {
    let error = client.response(1001).await.unwrap_err();
    assert_eq!(error.code, -32600);
    assert!(error.message.starts_with(message), "{}", error.message);
    client.check_alive().await;
    let peak = server.stats().peak_rss_kib();
    assert!(peak < MEMORY_KIB, "the server took {peak} KiB");
}

#[tokio::test]
async fn frame_over_64_mib_is_skipped_and_answered() {
    let (server, client) = server_and_client(Transport::WebSocket).await;
    client.send_text(&request_of(1001, LIMIT + 1)).await;
    client.send_text(&request_of(1002, 200)).await;
    assert!(client.response(1002).await.is_ok());
    check_error_and_alive(&server, &client, WEBSOCKET_PARSE_ERROR).await;
}

#[tokio::test]
async fn fragmented_message_over_64_mib_is_answered_once() {
    let (server, client) = server_and_client(Transport::Unix).await;
    let text = request_of(1001, LIMIT + 1024 * 1024);
    let pieces = text.as_bytes().chunks(LIMIT / 16);
    client.send_frames(frames::fragments(pieces)).await;
    check_error_and_alive(&server, &client, WEBSOCKET_PARSE_ERROR).await;
    assert_eq!(client.received().len(), 3, "initialize, the error, status");
}

#[tokio::test]
async fn line_over_64_mib_is_skipped_and_answered() {
    let (server, client) = server_and_client(Transport::Stdio).await;
    client.send_text(&request_of(1001, LIMIT + 1)).await;
    client.send_text(&request_of(1002, 200)).await;
    assert!(client.response(1002).await.is_ok());
    check_error_and_alive(&server, &client, STDIO_PARSE_ERROR).await;
}

#[tokio::test]
async fn message_of_exactly_64_mib_is_accepted() {
    let (server, client) = server_and_client(Transport::WebSocket).await;
    client.send_text(&request_of(1001, LIMIT)).await;
    assert!(client.response(1001).await.is_ok());
    let peak = server.stats().peak_rss_kib();
    assert!(peak < MEMORY_KIB, "the server took {peak} KiB");
}
