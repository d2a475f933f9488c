//! Tests links that are cut, stalled, half-closed and throttled at random while processes write and
//! clients type. Every byte is compared. `cargo xtask soak` runs this for longer.

use std::sync::{Arc, Mutex};

use outpost_testkit::reconnecting::{Delivery, Outcome, ReconnectingClient};
use outpost_testkit::{Direction, FaultyLink, SequenceCheck, Server, Start, sh};

use crate::outpost;

fn counting() -> (
    Arc<Mutex<SequenceCheck>>,
    impl FnMut(&[u8]) + Send + 'static,
) {
    let lines = Arc::new(Mutex::new(SequenceCheck::default()));
    let taker = Arc::clone(&lines);
    (lines, move |bytes: &[u8]| taker.lock().unwrap().take(bytes))
}

fn taken(lines: &Mutex<SequenceCheck>) -> u64 {
    lines.lock().unwrap().count()
}

/// Disturbs the link in every way, after varying numbers of lines.
async fn disturb_link(
    server: &Server,
    link: &FaultyLink,
    client: &ReconnectingClient,
    lines: &Mutex<SequenceCheck>,
    total: u64,
    rounds: u64,
) {
    for round in 0..rounds {
        let due = total * (round + 1) / (rounds + 1);
        outpost_testkit::deadline::poll_until("more lines", || (taken(lines) >= due).then_some(()))
            .await;
        let before = client.connections();
        match round % 5 {
            0 | 1 => link.cut().await,
            2 => {
                link.throttle(Direction::ToClient, 2_000_000);
                link.cut().await;
                link.open();
            }
            3 => {
                link.half_close(Direction::ToServer);
                link.cut().await;
                link.open();
            }
            _ => {
                link.stall(Direction::ToClient);
                link.cut().await;
                link.open();
            }
        }
        let back = || (client.connections() > before).then_some(());
        outpost_testkit::deadline::poll_until("the reconnect", back).await;
    }
    assert!(server.stats().rss_kib() < 200_000, "memory stays bounded");
}

#[tokio::test(flavor = "multi_thread")]
async fn acked_output_is_identical_over_many_cuts() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let client = ReconnectingClient::connect(link.url(), Delivery::Acked, server.tag()).await;
    let total = 1_000_000;
    let (lines, taker) = counting();
    client
        .follow(sh("p", &format!("exec seq 1 {total}")), taker)
        .await;
    disturb_link(&server, &link, &client, &lines, total, 40).await;
    assert_eq!(client.closed("p").await, Outcome { code: 0, gaps: 0 });
    assert_eq!(taken(&lines), total);
    assert!(client.connections() > 40, "{}", client.connections());
}

#[tokio::test(flavor = "multi_thread")]
async fn pushed_output_is_identical_after_a_timely_reconnect() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let client = ReconnectingClient::connect(link.url(), Delivery::Push, server.tag()).await;
    // Slow enough that output written during a reconnect is still retained.
    let total = 4_000;
    let script = format!(
        "i=0; while [ $i -lt {total} ]; do i=$((i+1)); echo $i; [ $((i % 20)) = 0 ] && sleep 0.01; done"
    );
    let (lines, taker) = counting();
    client.follow(sh("p", &script), taker).await;
    disturb_link(&server, &link, &client, &lines, total, 40).await;
    assert_eq!(client.closed("p").await, Outcome { code: 0, gaps: 0 });
    assert_eq!(taken(&lines), total);
}

#[tokio::test(flavor = "multi_thread")]
async fn input_arrives_once_and_in_order_over_cuts() {
    let server = outpost().start().await;
    for delivery in [Delivery::Push, Delivery::Acked] {
        let link = FaultyLink::to(server.address()).await;
        let client = ReconnectingClient::connect(link.url(), delivery, server.tag()).await;
        let (lines, taker) = counting();
        client
            .follow(Start::new("cat", &["cat"]).stdin(), taker)
            .await;
        for number in 1..=600_u64 {
            if number % 15 == 0 {
                link.cut().await;
            }
            client.write("cat", format!("{number}\n")).await;
        }
        outpost_testkit::deadline::poll_until("all of it", || (taken(&lines) == 600).then_some(()))
            .await;
        client
            .call("process/terminate", serde_json::json!({"processId": "cat"}))
            .await
            .unwrap();
        assert_eq!(client.closed("cat").await.gaps, 0);
        assert!(client.connections() > 20, "{}", client.connections());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn detached_acked_process_of_100_mb_blocks_then_delivers() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let client = ReconnectingClient::connect(link.url(), Delivery::Acked, server.tag()).await;
    // 12,777,778 lines are slightly more than 100 MB.
    let total = 12_777_778;
    let (lines, taker) = counting();
    client
        .follow(sh("p", &format!("exec seq 1 {total}")), taker)
        .await;
    // The process is blocked while the link is stalled.
    link.stall(Direction::ToClient);
    link.cut().await;
    // Data received before the cut is still processed.
    client.wait_lost().await;
    let before = taken(&lines);
    // While another client receives as much, nothing arrives here and nothing is lost.
    let other = server.client().await;
    other.only_count("p");
    other.start(sh("p", "exec head -c 100M /dev/zero")).await;
    other.wait_count("p", 100 * 1024 * 1024).await;
    assert_eq!(taken(&lines), before);
    assert!(server.stats().rss_kib() < 100_000, "blocked, not buffered");
    link.open();
    assert_eq!(client.closed("p").await, Outcome { code: 0, gaps: 0 });
    assert_eq!(taken(&lines), total);
}
