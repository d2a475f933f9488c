//! Compares a gigabyte of acked output over a thousand connection cuts.

use std::time::Instant;

use anyhow::{Result, ensure};
use fastrand::Rng;
use outpost_testkit::reconnecting::{Delivery, ReconnectingClient};
use outpost_testkit::{FaultyLink, Server, deadline, sh};

use super::client::follow_lines;

/// This many numbered lines have 1,000,000,018 bytes.
const LINES: u64 = 111_111_112;
const CUTS: u64 = 1000;

pub(super) async fn run(server: &Server, seed: u64) -> Result<()> {
    let started = Instant::now();
    let mut rng = Rng::with_seed(seed);
    let link = FaultyLink::to(server.address()).await;
    let client = ReconnectingClient::connect(link.url(), Delivery::Acked, server.tag()).await;
    let start = sh("gigabyte", &format!("exec seq 1 {LINES}"));
    let lines = follow_lines(&client, start).await;
    let count = || lines.lock().count();
    for cut in 0..CUTS {
        // A random point in the next thousandth.
        let due = LINES / CUTS * cut + rng.u64(..LINES / CUTS);
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
