//! A client that asks and asks and doesn't read the answers.

use std::time::Duration;

use outpost_testkit::{Client, Start, patience};
use serde_json::{Value, json};

use crate::{outpost, ready};

/// What the server may need for a client that doesn't read.
const MEMORY_KIB: u64 = 48 * 1024;

/// How long memory must not have grown to say that it won't.
const QUIET: Duration = Duration::from_millis(400);

/// A send that takes longer than this won't end.
const STUCK: Duration = Duration::from_millis(500);

/// Sends requests until the server doesn't take any more; says how many went.
async fn ask_until_stuck(client: &Client, method: &str, params: &Value) -> usize {
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
    panic!("the server takes in requests without end");
}

#[tokio::test]
async fn requests_without_end_are_bounded_in_memory() {
    for (method, params) in [
        ("environment/info", json!({})),
        ("process/list", json!({})),
        ("no/such/method", json!({})),
    ] {
        let (server, client) = ready().await;
        let before = server.vitals().peak_rss_kib();
        client.stop_reading();
        let sent = ask_until_stuck(&client, method, &params).await;
        assert!(sent > 1000, "only {sent} were taken in");
        let grown = server.vitals().peak_rss_kib().saturating_sub(before);
        assert!(grown < MEMORY_KIB, "{method}: grew by {grown} KiB");

        // Others don't feel it, and whoever reads again is answered.
        let other = server.client().await;
        other.run(Start::new("p", &["true"])).await;
        client.read_on();
        client
            .until("all answers", |seen| {
                (seen.messages.len() >= sent).then_some(())
            })
            .await;
    }
}

#[tokio::test]
async fn reads_of_much_without_end_are_bounded_in_memory() {
    let (server, client) = ready().await;
    client
        .run(Start::new("p", &["head", "-c", "1M", "/dev/zero"]))
        .await;
    let before = server.vitals().peak_rss_kib();
    client.stop_reading();
    // Each of them would be answered with 1.4 MB.
    for _ in 0..500 {
        client
            .request("process/read", json!({"processId": "p"}))
            .await;
    }
    let mut grown = 0;
    patience::soon("the server to have done what it will do", async {
        loop {
            // sleep: that nothing more is done shows in nothing happening
            tokio::time::sleep(QUIET).await;
            let now = server.vitals().peak_rss_kib().saturating_sub(before);
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
async fn garbage_without_end_is_bounded_in_memory() {
    let server = outpost().start().await;
    let client = server.connect().await;
    let before = server.vitals().peak_rss_kib();
    client.stop_reading();
    let garbage = "x".repeat(2000);
    let mut sent = 0;
    while tokio::time::timeout(STUCK, client.try_send_text(&garbage))
        .await
        .is_ok()
    {
        sent += 1;
        assert!(sent < 40_000, "the server takes in garbage without end");
    }
    let grown = server.vitals().peak_rss_kib().saturating_sub(before);
    assert!(grown < MEMORY_KIB, "grew by {grown} KiB");
    let other = server.client().await;
    other.run(Start::new("p", &["true"])).await;
    client.read_on();
    client
        .until("all answers", |seen| {
            (seen.messages.len() >= sent).then_some(())
        })
        .await;
}
