//! A flood and what goes on beside it.

use std::time::{Duration, Instant};

use outpost_testkit::{Start, programs, sh};
use serde_json::json;

use crate::{over_each_transport, ready};

/// What a person would call stuck. The contract's 20 ms are measured by the benchmark.
const STUCK: Duration = Duration::from_secs(5);

#[tokio::test]
async fn typing_stays_live_beside_a_flood_on_the_same_connection() {
    over_each_transport(async |_, client| {
        client.shake_hands().await;
        client.only_count("flood");
        client.start(sh("flood", programs::FLOODS)).await;
        client.counts("flood", 1024 * 1024).await;
        client
            .start(sh("typing", "stty -echo; echo ready; cat").tty())
            .await;
        client.sees("typing", "ready").await;
        for n in 0..30 {
            let typed = Instant::now();
            client
                .write("typing", format!("key{n}\n"), &format!("w{n}"))
                .await;
            client.sees("typing", &format!("key{n}\r\n")).await;
            let took = typed.elapsed();
            assert!(took < STUCK, "{took:?} for key {n}");
        }
        assert!(!client.story("flood").is_closed());
        client.end("typing").await;
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
        client.counts(&format!("flood{n}"), 1024 * 1024).await;
    }
    for n in 0..10 {
        let asked = Instant::now();
        client.is_alive().await;
        client.call("process/list", json!({})).await;
        client.run(Start::new(&format!("p{n}"), &["true"])).await;
        let took = asked.elapsed();
        assert!(took < STUCK, "{took:?}");
    }
    // Each of the floods had its turns.
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
async fn a_flood_on_one_connection_leaves_another_alone() {
    let (server, client) = ready().await;
    client.only_count("flood");
    client.start(sh("flood", programs::FLOODS)).await;
    client.counts("flood", 1024 * 1024).await;
    let other = server.client().await;
    other.start(Start::new("cat", &["cat"]).stdin()).await;
    for n in 0..30 {
        let typed = Instant::now();
        other
            .write("cat", format!("key{n}\n"), &format!("w{n}"))
            .await;
        other.sees("cat", &format!("key{n}\n")).await;
        let took = typed.elapsed();
        assert!(took < STUCK, "{took:?} for key {n}");
    }
    other.end("cat").await;
    client.terminate("flood").await;
    client.exited("flood").await;
}
