//! Tests that much output of one process doesn't starve others.

use std::time::{Duration, Instant};

use outpost_testkit::{Start, programs, sh};
use serde_json::json;

use crate::{over_each_transport, ready};

/// A generous limit; the benchmark measures the 20 ms of the contract.
const STUCK: Duration = Duration::from_secs(5);

#[tokio::test]
async fn typing_stays_responsive_beside_a_flood() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        client.only_count("flood");
        client.start(sh("flood", programs::FLOODS)).await;
        client.wait_count("flood", 1024 * 1024).await;
        client
            .start(sh("typing", "stty -echo; echo ready; cat").tty())
            .await;
        client.wait_output("typing", "ready").await;
        for n in 0..30 {
            let typed = Instant::now();
            client
                .write("typing", format!("key{n}\n"), &format!("w{n}"))
                .await;
            client.wait_output("typing", &format!("key{n}\r\n")).await;
            let took = typed.elapsed();
            assert!(took < STUCK, "{took:?} for key {n}");
        }
        assert!(!client.event_log("flood").is_closed());
        client.terminate_and_wait("typing").await;
        client.terminate("flood").await;
        client.exited("flood").await;
    })
    .await;
}

#[tokio::test]
async fn requests_are_answered_beside_many_floods() {
    let (_server, client) = ready().await;
    for n in 0..4 {
        let id = format!("flood{n}");
        client.only_count(&id);
        client.start(sh(&id, programs::FLOODS)).await;
    }
    for n in 0..4 {
        client.wait_count(&format!("flood{n}"), 1024 * 1024).await;
    }
    for n in 0..10 {
        let since = Instant::now();
        client.check_alive().await;
        client.call("process/list", json!({})).await;
        client.run(Start::new(&format!("p{n}"), &["true"])).await;
        let took = since.elapsed();
        assert!(took < STUCK, "{took:?}");
    }
    // Every writer made progress.
    let counts: Vec<_> = (0..4)
        .map(|n| client.counted(&format!("flood{n}")).bytes)
        .collect();
    let (least, most) = (counts.iter().min(), counts.iter().max());
    assert!(
        least
            .zip(most)
            .is_some_and(|(least, most)| least * 20 > *most),
        "{counts:?}"
    );
    for n in 0..4 {
        assert!(client.terminate(&format!("flood{n}")).await);
    }
    for n in 0..4 {
        client.exited(&format!("flood{n}")).await;
    }
}

#[tokio::test]
async fn flood_on_one_connection_does_not_affect_another() {
    let (server, client) = ready().await;
    client.only_count("flood");
    client.start(sh("flood", programs::FLOODS)).await;
    client.wait_count("flood", 1024 * 1024).await;
    let other = server.client().await;
    other.start(Start::new("cat", &["cat"]).stdin()).await;
    for n in 0..30 {
        let typed = Instant::now();
        other
            .write("cat", format!("key{n}\n"), &format!("w{n}"))
            .await;
        other.wait_output("cat", &format!("key{n}\n")).await;
        let took = typed.elapsed();
        assert!(took < STUCK, "{took:?} for key {n}");
    }
    other.terminate_and_wait("cat").await;
    client.terminate("flood").await;
    client.exited("flood").await;
}
