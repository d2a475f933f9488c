//! Tests the per-connection limits of HTTP requests.

use std::time::Duration;

use outpost_testkit::{deadline, http_test_server, sh};
use serde_json::json;

use super::{get, get_params, request_fails, streamed, streaming, wait_for_bytes};
use crate::ready;

/// Starts a server whose bodies have as many dots as the path says.
async fn dots() -> http_test_server::HttpTestServer {
    http_test_server::HttpTestServer::start(|request| match request.target[1..].parse() {
        Ok(size) => {
            let length = format!("Content-Length: {size}");
            vec![
                http_test_server::head("200 OK", &[&length]),
                http_test_server::ResponseStep::Dots(size),
            ]
        }
        Err(_) => vec![http_test_server::ResponseStep::Silence],
    })
    .await
}

#[tokio::test]
async fn whole_body_is_bounded() {
    let (_server, client) = ready().await;
    let web = dots().await;
    let most = 32 * 1024 * 1024;
    let whole = get(&client, &web.url(&format!("/{most}"))).await;
    assert_eq!(super::body(&whole).len(), most);
    let params = get_params(&web.url(&format!("/{}", most + 1)), json!({}));
    let error = request_fails(&client, params).await;
    let message = "http/request failed: the body is larger than 33554432 bytes, and has to be streamed (streamResponse: true)";
    assert_eq!(error.parts(), (-32603, message));
    web.wait_idle().await;
}

#[tokio::test]
async fn large_bodies_are_sent_one_at_a_time() {
    let (_server, client) = ready().await;
    let web = dots().await;
    let mut requests = Vec::new();
    for _ in 0..8 {
        let params = get_params(&web.url("/3000000"), json!({}));
        requests.push(client.request("http/request", params).await);
    }
    for id in requests {
        let whole = client.response(id).await.expect("a response");
        assert_eq!(super::body(&whole).len(), 3_000_000);
    }
}

#[tokio::test]
async fn concurrent_requests_are_bounded() {
    let (server, client) = ready().await;
    let web = dots().await;
    for number in 0..64 {
        let id = format!("s{number}");
        client
            .request("http/request", streaming(&web.url("/never"), &id))
            .await;
        let params = get_params(&web.url("/never"), json!({}));
        client.request("http/request", params).await;
    }
    web.request(127).await;
    let error = request_fails(&client, get_params(&web.url("/1"), json!({}))).await;
    assert_eq!(error.parts(), (-32001, "Server overloaded; retry later."));
    let error = request_fails(&client, streaming(&web.url("/1"), "one more")).await;
    assert_eq!(error.parts(), (-32001, "Server overloaded; retry later."));
    // Other methods and other connections aren't affected.
    client.run(sh("p", "echo hello")).await;
    get(&server.client().await, &web.url("/1")).await;
    client
        .notify("http/request/cancel", json!({"requestId": "s0"}))
        .await;
    deadline::poll_until("a free slot", || (web.answering() < 128).then_some(())).await;
    client
        .call("http/request", streaming(&web.url("/1"), "one more"))
        .await;
    streamed(&client, "one more").await;
}

/// A body of which nothing was read for this long is blocked.
const QUIET: Duration = Duration::from_millis(400);

#[tokio::test]
async fn unread_body_blocks_its_source() {
    let (server, client) = ready().await;
    let web = dots().await;
    let size: u64 = 100_000_000;
    let before = server.stats().peak_rss_kib();
    client
        .call(
            "http/request",
            streaming(&web.url(&format!("/{size}")), "s"),
        )
        .await;
    wait_for_bytes(&client, "s", 1).await;
    client.stop_reading();
    let flooded = deadline::expect_soon("it to be blocked", async {
        let mut before = web.dots_written();
        loop {
            // sleep: a blocked body produces no event
            tokio::time::sleep(QUIET).await;
            let now = web.dots_written();
            if now == before {
                return now;
            }
            before = now;
        }
    })
    .await;
    assert!(flooded < size / 2, "{flooded} bytes");
    let grown = server.stats().peak_rss_kib().saturating_sub(before);
    assert!(grown < 24 * 1024, "the server grew by {grown} KiB");
    // Other connections aren't affected.
    let other = server.client().await;
    other
        .call("http/request", streaming(&web.url("/3000000"), "s"))
        .await;
    assert_eq!(streamed(&other, "s").await.bytes.len(), 3_000_000);
    client.cut().await;
    web.wait_idle().await;
}
