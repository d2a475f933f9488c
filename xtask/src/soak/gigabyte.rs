//! A gigabyte of acknowledged output over a thousand cuts, every byte compared.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Result, ensure};
use outpost_testkit::steadfast::{Delivery, Steadfast};
use outpost_testkit::{CountedLines, Link, Server, patience, sh};

use super::dice::Dice;

/// As many numbered lines are 1,000,000,018 bytes.
const LINES: u64 = 111_111_112;
const CUTS: u64 = 1000;

pub(super) async fn run(server: &Server, seed: u64) -> Result<()> {
    let started = Instant::now();
    let mut dice = Dice::new(seed);
    let link = Link::to(server.address()).await;
    let client = Steadfast::connect(link.url(), Delivery::Acked, server.mark()).await;
    let lines = Arc::new(Mutex::new(CountedLines::default()));
    let taker = Arc::clone(&lines);
    let count = || {
        let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.count()
    };
    client
        .follow(
            sh("gigabyte", &format!("exec seq 1 {LINES}")),
            move |bytes| {
                let mut lines = taker.lock().unwrap_or_else(PoisonError::into_inner);
                lines.take(bytes);
            },
        )
        .await;
    for cut in 0..CUTS {
        // Somewhere in the next thousandth.
        let due = LINES / CUTS * cut + dice.between(0, LINES / CUTS - 1);
        patience::seen("more of the gigabyte", || (count() >= due).then_some(())).await;
        let before = client.connections();
        link.cut().await;
        let back = || (client.connections() > before).then_some(());
        patience::seen("the client come back", back).await;
    }
    let outcome = client.closed("gigabyte").await;
    ensure!(
        (outcome.code, outcome.gaps, count()) == (0, 0, LINES),
        "{outcome:?} after {} of {LINES} lines",
        count()
    );
    println!(
        "1 GB, acknowledged, over {} connections: identical, in {:.0?}",
        client.connections(),
        started.elapsed()
    );
    Ok(())
}
