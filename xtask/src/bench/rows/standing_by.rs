//! What a server costs that has nothing to do, and a process that has nothing to say.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use crate::bench::bound::Bound;
use crate::bench::client::Client;
use crate::bench::contest::compare;
use crate::bench::crowd::{Crowd, settled};
use crate::bench::line::{KIB, Line, MIB, Unit};
use crate::bench::link::Link;
use crate::bench::proc_files::processor_time;
use crate::bench::run::Bench;
use crate::bench::server::Candidate;
use crate::bench::stats::millis;

/// How long a server is watched doing nothing.
const WATCH: Duration = Duration::from_secs(2);

/// More than this in [`WATCH`] is more than a clock that ticks now and then.
const IDLE_MILLIS: f64 = 1.0;

/// Memory hardly differs from one server to the next.
const ROUNDS: usize = 3;

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let count = bench.amount(200, 50);
    let rounds = bench.rounds.min(ROUNDS);
    let medians = compare(bench, rounds, None, Ok, |candidate| {
        measure(*candidate, count)
    })?;
    let line = |at: usize, name: String, unit, bound| Line {
        name: format!("standing by: {name}"),
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
    let empty = settled(pid)?;
    let client = Client::connect(server.url())?;
    let mut link = Link { client, server };
    let crowd = Crowd::gather(&mut link, count)?;
    let before = processor_time(pid)?;
    thread::sleep(WATCH);
    let busy = processor_time(pid)? - before;
    crowd.dismiss(&mut link.client)?;
    Ok([empty, crowd.memory_each, millis(busy)])
}
