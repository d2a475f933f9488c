//! Many commands, several in flight, on one connection.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Result, bail, ensure};

use super::one_shot::{COMMAND, run_bare};
use crate::bench::bound::Bound;
use crate::bench::client::{Client, Start};
use crate::bench::connected_server::ConnectedServer;
use crate::bench::measurement::{Measurement, Unit};
use crate::bench::message::Message;
use crate::bench::rounds::compare;
use crate::bench::run::Bench;
use crate::bench::stats::rate;

const AT_ONCE: usize = 32;

pub(super) fn run(bench: &Bench) -> Result<Vec<Measurement>> {
    let count = bench.amount(1000, 200);
    let medians = compare(
        bench,
        bench.rounds,
        Some(&mut || Ok([bare(count)?])),
        ConnectedServer::open,
        |link| Ok([served(&mut link.client, count)?]),
    )?;
    Ok(vec![Measurement {
        name: format!("many at once, {AT_ONCE} in flight"),
        unit: Unit::PerSecond,
        bare: medians.bare.map(|[rate]| rate),
        outpost: medians.outpost[0],
        peer: medians.peer.map(|[rate]| rate),
        bounds: vec![Bound::RatioAtLeast(0.8)],
    }])
}

/// One thread per command in flight.
fn bare(count: usize) -> Result<f64> {
    let started = AtomicUsize::new(0);
    let ready = Barrier::new(AT_ONCE + 1);
    let work = || -> Result<()> {
        ready.wait();
        while started.fetch_add(1, Ordering::Relaxed) < count {
            run_bare()?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        ready.wait();
        let begun = Instant::now();
        for worker in workers {
            match worker.join() {
                Ok(outcome) => outcome?,
                Err(_) => bail!("a launcher panicked"),
            }
        }
        Ok(rate(count, begun.elapsed()))
    })
}

fn served(client: &mut Client, count: usize) -> Result<f64> {
    let start = Start {
        argv: &[COMMAND],
        ..Start::default()
    };
    let begun = Instant::now();
    for _ in 0..AT_ONCE.min(count) {
        client.start(start)?;
    }
    let mut started = AT_ONCE.min(count);
    let mut closed = 0;
    while closed < count {
        match client.next()? {
            Message::Exited { code, .. } => ensure!(code == 0, "{COMMAND} ended with {code}"),
            Message::Closed { .. } => {
                closed += 1;
                if started < count {
                    started += 1;
                    client.start(start)?;
                }
            }
            _ => {}
        }
    }
    Ok(rate(count, begun.elapsed()))
}
