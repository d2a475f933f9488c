//! Links that are cut, stalled, half-closed and throttled at random, while processes write and
//! clients type: every byte is compared. `cargo xtask soak` does the same for longer.

use std::sync::{Arc, Mutex};

use outpost_testkit::steadfast::{Delivery, Outcome, Steadfast};
use outpost_testkit::{CountedLines, Direction, Link, Server, Start, sh};

use crate::outpost;

fn counting() -> (Arc<Mutex<CountedLines>>, impl FnMut(&[u8]) + Send + 'static) {
    let lines = Arc::new(Mutex::new(CountedLines::default()));
    let taker = Arc::clone(&lines);
    (lines, move |bytes: &[u8]| taker.lock().unwrap().take(bytes))
}

fn taken(lines: &Mutex<CountedLines>) -> u64 {
    lines.lock().unwrap().count()
}

/// Cuts the link, in all the ways there are, after this or that many lines.
async fn harass(
    server: &Server,
    link: &Link,
    client: &Steadfast,
    lines: &Mutex<CountedLines>,
    total: u64,
    rounds: u64,
) {
    for round in 0..rounds {
        let due = total * (round + 1) / (rounds + 1);
        outpost_testkit::patience::seen("more lines", || (taken(lines) >= due).then_some(())).await;
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
        outpost_testkit::patience::seen("the client come back", back).await;
    }
    assert!(server.vitals().rss_kib() < 200_000, "memory stays bounded");
}

#[tokio::test(flavor = "multi_thread")]
async fn acked_output_is_identical_over_many_cuts() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let client = Steadfast::connect(link.url(), Delivery::Acked, server.mark()).await;
    let total = 1_000_000;
    let (lines, taker) = counting();
    client
        .follow(sh("p", &format!("exec seq 1 {total}")), taker)
        .await;
    harass(&server, &link, &client, &lines, total, 40).await;
    assert_eq!(client.closed("p").await, Outcome { code: 0, gaps: 0 });
    assert_eq!(taken(&lines), total);
    assert!(client.connections() > 40, "{}", client.connections());
}

#[tokio::test(flavor = "multi_thread")]
async fn pushed_output_is_identical_when_the_client_comes_back_in_time() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let client = Steadfast::connect(link.url(), Delivery::Push, server.mark()).await;
    // Slow enough that what comes during a reconnect is still retained.
    let total = 4_000;
    let script = format!(
        "i=0; while [ $i -lt {total} ]; do i=$((i+1)); echo $i; [ $((i % 20)) = 0 ] && sleep 0.01; done"
    );
    let (lines, taker) = counting();
    client.follow(sh("p", &script), taker).await;
    harass(&server, &link, &client, &lines, total, 40).await;
    assert_eq!(client.closed("p").await, Outcome { code: 0, gaps: 0 });
    assert_eq!(taken(&lines), total);
}

#[tokio::test(flavor = "multi_thread")]
async fn typing_reaches_the_process_once_and_in_order_over_cuts() {
    let server = outpost().start().await;
    for delivery in [Delivery::Push, Delivery::Acked] {
        let link = Link::to(server.address()).await;
        let client = Steadfast::connect(link.url(), delivery, server.mark()).await;
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
        outpost_testkit::patience::seen("all of it", || (taken(&lines) == 600).then_some(())).await;
        client
            .call("process/terminate", serde_json::json!({"processId": "cat"}))
            .await
            .unwrap();
        assert_eq!(client.closed("cat").await.gaps, 0);
        assert!(client.connections() > 20, "{}", client.connections());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_detached_acked_process_of_100_mb_waits_and_then_delivers_all_of_it() {
    let server = outpost().start().await;
    let link = Link::to(server.address()).await;
    let client = Steadfast::connect(link.url(), Delivery::Acked, server.mark()).await;
    // 12,777,778 lines are 100 MB and a bit.
    let total = 12_777_778;
    let (lines, taker) = counting();
    client
        .follow(sh("p", &format!("exec seq 1 {total}")), taker)
        .await;
    // The link lets nothing through for a while: the process waits.
    link.stall(Direction::ToClient);
    link.cut().await;
    // What had arrived before the cut is still taken.
    client.lost().await;
    let before = taken(&lines);
    // In the time somebody else takes for as much, nothing arrives and nothing is lost.
    let other = server.client().await;
    other.only_count("p");
    other.start(sh("p", "exec head -c 100M /dev/zero")).await;
    other.counts("p", 100 * 1024 * 1024).await;
    assert_eq!(taken(&lines), before);
    assert!(
        server.vitals().rss_kib() < 100_000,
        "held back, not hoarded"
    );
    link.open();
    assert_eq!(client.closed("p").await, Outcome { code: 0, gaps: 0 });
    assert_eq!(taken(&lines), total);
}
