//! Compares a gigabyte of acked output over a thousand connection cuts.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use outpost_testkit::reconnecting::{Delivery, ReconnectingClient};
use outpost_testkit::{CountedLines, FaultyLink, Server, deadline, sh};

use parking_lot::Mutex;

use super::rng::Rng;

/// This many numbered lines have 1,000,000,018 bytes.
const LINES: u64 = 111_111_112;
const CUTS: u64 = 1000;

pub(super) async fn run(server: &Server, seed: u64) -> Result<()> {
    let started = Instant::now();
    let mut rng = Rng::new(seed);
    let link = FaultyLink::to(server.address()).await;
    let client = ReconnectingClient::connect(link.url(), Delivery::Acked, server.tag()).await;
    let lines = Arc::new(Mutex::new(CountedLines::default()));
    let sink = Arc::clone(&lines);
    let count = || {
        let lines = lines.lock();
        lines.count()
    };
    client
        .follow(
            sh("gigabyte", &format!("exec seq 1 {LINES}")),
            move |bytes| {
                let mut lines = sink.lock();
                lines.take(bytes);
            },
        )
        .await;
    for cut in 0..CUTS {
        // A random point in the next thousandth.
        let due = LINES / CUTS * cut + rng.between(0, LINES / CUTS - 1);
        deadline::poll_until("more output", || (count() >= due).then_some(())).await;
        let before = client.connections();
        link.cut().await;
        let back = || (client.connections() > before).then_some(());
        deadline::poll_until("a reconnect", back).await;
    }
    let outcome = client.closed("gigabyte").await;
    ensure!(
        (outcome.code, outcome.gaps, count()) == (0, 0, LINES),
        "{outcome:?} after {} of {LINES} lines",
        count()
    );
    println!(
        "1 GB acked over {} connections: identical, in {:.0?}",
        client.connections(),
        started.elapsed()
    );
    Ok(())
}
