//! Tests a client that sends requests and doesn't read the responses.

use std::time::Duration;

use outpost_testkit::{Client, Start, deadline};
use serde_json::{Value, json};

use crate::{outpost, ready};

/// The memory that the server may use for a client that doesn't read.
const MEMORY_KIB: u64 = 48 * 1024;

/// Memory that hasn't grown for this long won't grow further.
const QUIET: Duration = Duration::from_millis(400);

/// A send that takes longer than this is blocked.
const STUCK: Duration = Duration::from_millis(500);

/// Sends requests until the server stops reading, and returns their number.
async fn send_until_blocked(client: &Client, method: &str, params: &Value) -> usize {
    let pad = "x".repeat(2000);
    for sent in 0..40_000 {
        let id = client.fresh_id();
        let message = json!({"id": id, "method": method, "params": params, "pad": pad});
        let text = message.to_string();
        let send = tokio::time::timeout(STUCK, client.try_send_text(&text));
        match send.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => panic!("the server hung up: {error}"),
            Err(_) => return sent,
        }
    }
    panic!("the server never stops reading requests");
}

#[tokio::test]
async fn endless_requests_use_bounded_memory() {
    for (method, params) in [
        ("environment/info", json!({})),
        ("process/list", json!({})),
        ("no/such/method", json!({})),
    ] {
        let (server, client) = ready().await;
        let before = server.stats().peak_rss_kib();
        client.stop_reading();
        let sent = send_until_blocked(&client, method, &params).await;
        assert!(sent > 1000, "only {sent} were taken in");
        let grown = server.stats().peak_rss_kib().saturating_sub(before);
        assert!(grown < MEMORY_KIB, "{method}: grew by {grown} KiB");

        // Other clients aren't affected, and a client that reads again gets its responses.
        let other = server.client().await;
        other.run(Start::new("p", &["true"])).await;
        client.resume_reading();
        client
            .until("all responses", |seen| {
                (seen.messages.len() >= sent).then_some(())
            })
            .await;
    }
}

#[tokio::test]
async fn endless_large_reads_use_bounded_memory() {
    let (server, client) = ready().await;
    client
        .run(Start::new("p", &["head", "-c", "1M", "/dev/zero"]))
        .await;
    let before = server.stats().peak_rss_kib();
    client.stop_reading();
    // Each response has 1.4 MB.
    for _ in 0..500 {
        client
            .request("process/read", json!({"processId": "p"}))
            .await;
    }
    let mut grown = 0;
    deadline::expect_soon("stable memory of the server", async {
        loop {
            // sleep: a server that has stopped reading produces no event
            tokio::time::sleep(QUIET).await;
            let now = server.stats().peak_rss_kib().saturating_sub(before);
            if now == grown {
                break;
            }
            grown = now;
        }
    })
    .await;
    assert!(grown < MEMORY_KIB, "grew by {grown} KiB");
    let other = server.client().await;
    other.run(Start::new("p", &["true"])).await;
}

#[tokio::test]
async fn endless_garbage_uses_bounded_memory() {
    let server = outpost().start().await;
    let client = server.connect().await;
    let before = server.stats().peak_rss_kib();
    client.stop_reading();
    let garbage = "x".repeat(2000);
    let mut sent = 0;
    while tokio::time::timeout(STUCK, client.try_send_text(&garbage))
        .await
        .is_ok()
    {
        sent += 1;
        assert!(sent < 40_000, "the server never stops reading garbage");
    }
    let grown = server.stats().peak_rss_kib().saturating_sub(before);
    assert!(grown < MEMORY_KIB, "grew by {grown} KiB");
    let other = server.client().await;
    other.run(Start::new("p", &["true"])).await;
    client.resume_reading();
    client
        .until("all responses", |seen| {
            (seen.messages.len() >= sent).then_some(())
        })
        .await;
}
