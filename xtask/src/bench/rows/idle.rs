//! Memory and CPU of an idle server and of idle processes.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use crate::bench::bound::Bound;
use crate::bench::client::Client;
use crate::bench::connected_server::ConnectedServer;
use crate::bench::idle_processes::{IdleProcesses, memory_when_idle};
use crate::bench::measurement::{KIB, MIB, Measurement, Unit};
use crate::bench::proc_files::processor_time;
use crate::bench::rounds::compare;
use crate::bench::run::Bench;
use crate::bench::server::Candidate;
use crate::bench::stats::millis;

/// The observation time.
const WATCH: Duration = Duration::from_secs(2);

/// CPU time in [`WATCH`] that still counts as idle.
const IDLE_MILLIS: f64 = 1.0;

/// Memory varies little between servers.
const ROUNDS: usize = 3;

pub(super) fn run(bench: &Bench) -> Result<Vec<Measurement>> {
    let count = bench.amount(200, 50);
    let rounds = bench.rounds.min(ROUNDS);
    let medians = compare(bench, rounds, None, Ok, |candidate| {
        measure(*candidate, count)
    })?;
    let line = |at: usize, name: String, unit, bound| Measurement {
        name: format!("idle: {name}"),
        unit,
        bare: None,
        outpost: medians.outpost[at],
        peer: medians.peer.map(|peer| peer[at]),
        bounds: vec![Bound::AtMost(bound)],
    };
    Ok(vec![
        line(0, "empty server".to_owned(), Unit::Bytes, 12.0 * MIB),
        line(1, "each process".to_owned(), Unit::Bytes, 16.0 * KIB),
        line(2, format!("CPU in {WATCH:?}"), Unit::Millis, IDLE_MILLIS),
    ])
}

fn measure(candidate: Candidate<'_>, count: usize) -> Result<[f64; 3]> {
    let server = candidate.start()?;
    let pid = server.pid();
    let empty = memory_when_idle(pid)?;
    let client = Client::connect(server.url())?;
    let mut link = ConnectedServer { client, server };
    let idle_processes = IdleProcesses::start(&mut link, count)?;
    let before = processor_time(pid)?;
    thread::sleep(WATCH);
    let busy = processor_time(pid)? - before;
    idle_processes.terminate(&mut link.client)?;
    Ok([empty, idle_processes.memory_each, millis(busy)])
}
