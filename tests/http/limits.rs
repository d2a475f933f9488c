//! How much of all this a connection may have.

use std::time::Duration;

use outpost_testkit::{patience, sh, web};
use serde_json::json;

use super::{asking, get, refusal, so_far, streamed, streaming};
use crate::ready;

/// A server with bodies of as many dots as the path says.
async fn dots() -> web::Web {
    web::Web::start(|asked| match asked.target[1..].parse() {
        Ok(size) => {
            let length = format!("Content-Length: {size}");
            vec![web::head("200 OK", &[&length]), web::Say::Dots(size)]
        }
        Err(_) => vec![web::Say::Silence],
    })
    .await
}

#[tokio::test]
async fn a_body_in_one_piece_is_bounded() {
    let (_server, client) = ready().await;
    let web = dots().await;
    let most = 32 * 1024 * 1024;
    let whole = get(&client, &web.url(&format!("/{most}"))).await;
    assert_eq!(super::body(&whole).len(), most);
    let params = asking(&web.url(&format!("/{}", most + 1)), json!({}));
    let error = refusal(&client, params).await;
    let words = "http/request failed: the body is larger than 33554432 bytes, and has to be streamed (streamResponse: true)";
    assert_eq!(error.parts(), (-32603, words));
    web.all_over().await;
}

#[tokio::test]
async fn large_ones_come_one_after_the_other() {
    let (_server, client) = ready().await;
    let web = dots().await;
    let mut asked = Vec::new();
    for _ in 0..8 {
        let params = asking(&web.url("/3000000"), json!({}));
        asked.push(client.request("http/request", params).await);
    }
    for id in asked {
        let whole = client.answer(id).await.expect("a response");
        assert_eq!(super::body(&whole).len(), 3_000_000);
    }
}

#[tokio::test]
async fn there_is_an_end_to_how_many_there_are() {
    let (server, client) = ready().await;
    let web = dots().await;
    for number in 0..64 {
        let id = format!("s{number}");
        client
            .request("http/request", streaming(&web.url("/never"), &id))
            .await;
        let params = asking(&web.url("/never"), json!({}));
        client.request("http/request", params).await;
    }
    web.asked(127).await;
    let error = refusal(&client, asking(&web.url("/1"), json!({}))).await;
    assert_eq!(error.parts(), (-32001, "Server overloaded; retry later."));
    let error = refusal(&client, streaming(&web.url("/1"), "one more")).await;
    assert_eq!(error.parts(), (-32001, "Server overloaded; retry later."));
    // That is nobody else's trouble, and nothing else's.
    client.run(sh("p", "echo hello")).await;
    get(&server.client().await, &web.url("/1")).await;
    client
        .notify("http/request/cancel", json!({"requestId": "s0"}))
        .await;
    patience::seen("a place to be free", || {
        (web.answering() < 128).then_some(())
    })
    .await;
    client
        .call("http/request", streaming(&web.url("/1"), "one more"))
        .await;
    streamed(&client, "one more").await;
}

/// How long nothing must have come to say that a body is held back.
const QUIET: Duration = Duration::from_millis(400);

#[tokio::test]
async fn a_client_that_does_not_read_holds_back_the_body() {
    let (server, client) = ready().await;
    let web = dots().await;
    let size: u64 = 100_000_000;
    let before = server.vitals().peak_rss_kib();
    client
        .call(
            "http/request",
            streaming(&web.url(&format!("/{size}")), "s"),
        )
        .await;
    so_far(&client, "s", 1).await;
    client.stop_reading();
    let flooded = patience::soon("it to be held back", async {
        let mut before = web.flooded();
        loop {
            // sleep: being held back shows in nothing happening
            tokio::time::sleep(QUIET).await;
            let now = web.flooded();
            if now == before {
                return now;
            }
            before = now;
        }
    })
    .await;
    assert!(flooded < size / 2, "{flooded} bytes");
    let grown = server.vitals().peak_rss_kib().saturating_sub(before);
    assert!(grown < 24 * 1024, "the server grew by {grown} KiB");
    // Others don't notice.
    let other = server.client().await;
    other
        .call("http/request", streaming(&web.url("/3000000"), "s"))
        .await;
    assert_eq!(streamed(&other, "s").await.bytes.len(), 3_000_000);
    client.cut().await;
    web.all_over().await;
}
