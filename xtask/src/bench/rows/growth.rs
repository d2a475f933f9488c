//! Latency and memory with more and more idle processes or connections.

use anyhow::Result;

use super::one_shot;
use super::typing::{self, ECHO, Typing};
use crate::bench::bound::Bound;
use crate::bench::client::Client;
use crate::bench::idle_processes::IdleProcesses;
use crate::bench::measurement::{Measurement, Unit};
use crate::bench::relay::Relay;
use crate::bench::rounds::compare;
use crate::bench::run::Bench;
use crate::bench::server::Candidate;
use crate::bench::stats::median;

/// The numbers per level. Each level has its own server, and the levels take turns.
type Levels = [usize; 3];

/// The kind of load.
#[derive(Clone, Copy)]
enum Kind {
    /// Processes of one connection.
    Processes,
    /// Connections with one process each.
    Connections,
}

impl Kind {
    fn levels(self) -> Levels {
        match self {
            Self::Processes => [10, 100, 1000],
            Self::Connections => [1, 10, 100],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Processes => "idle",
            Self::Connections => "connected",
        }
    }
}

/// The measured values with unit and base level. Memory uses the second level as its base, since
/// the first has too few processes for page granularity.
const LOOKS: [(&str, Unit, usize); 3] = [
    ("one-shot p50", Unit::Millis, 0),
    ("typing p50", Unit::Millis, 0),
    ("memory each", Unit::Bytes, 1),
];

/// The values of the first level, then of the second, and so on.
const NUMBERS: usize = size_of::<Levels>() / size_of::<usize>() * LOOKS.len();

/// The maximum ratio to the base level that counts as flat. Two runs of one build differ by less.
const FLAT: f64 = 1.25;

pub(super) fn run(bench: &Bench) -> Result<Vec<Measurement>> {
    let mut lines = grow(bench, Kind::Processes)?;
    lines.extend(grow(bench, Kind::Connections)?);
    Ok(lines)
}

fn grow(bench: &Bench, kind: Kind) -> Result<Vec<Measurement>> {
    let counts = kind.levels();
    let shots = bench.amount(100, 20);
    let keys = bench.amount(500, 100);
    let relay = Relay::start(ECHO)?;
    let mut socket = relay.connect()?;
    let mut bare = || {
        let shot = one_shot::p50(shots, one_shot::bare)?;
        let key = median(&typing::bare(&mut socket, keys)?);
        in_order(&counts.map(|_| [shot, key, 0.0]))
    };
    let open = |candidate| {
        let levels = counts.map(|count| Grown::new(candidate, kind, count));
        levels.into_iter().collect::<Result<Vec<_>>>()
    };
    let medians = compare(bench, bench.rounds, Some(&mut bare), open, |levels| {
        let looks = levels.iter_mut().map(|level| level.look(shots, keys));
        in_order(&looks.collect::<Result<Vec<_>>>()?)
    })?;

    let mut lines = Vec::new();
    for (look, (name, unit, first)) in LOOKS.into_iter().enumerate() {
        let place = |level: usize| level * LOOKS.len() + look;
        for (level, count) in counts.into_iter().enumerate().skip(first) {
            let at = place(level);
            let flat = Bound::Flat {
                times: FLAT,
                first: medians.outpost[place(first)],
                at: counts[first],
            };
            lines.push(Measurement {
                name: format!("{name}, {count} {}", kind.name()),
                unit,
                bare: medians.bare.map(|bare| bare[at]).filter(|bare| *bare > 0.0),
                outpost: medians.outpost[at],
                peer: medians.peer.map(|peer| peer[at]),
                bounds: (level > first).then_some(flat).into_iter().collect(),
            });
        }
    }
    Ok(lines)
}

fn in_order(levels: &[[f64; LOOKS.len()]]) -> Result<[f64; NUMBERS]> {
    Ok(levels.concat().as_slice().try_into()?)
}

/// A typing client on a loaded server.
struct Grown {
    typing: Typing,
    idle_processes: IdleProcesses,
    /// Keeps the connections open.
    _others: Vec<Client>,
}

impl Grown {
    fn new(candidate: Candidate<'_>, kind: Kind, count: usize) -> Result<Self> {
        let mut typing = Typing::new(candidate)?;
        let (idle_processes, others) = match kind {
            Kind::Processes => (IdleProcesses::start(&mut typing.link, count)?, Vec::new()),
            Kind::Connections => IdleProcesses::start_on_connections(&mut typing.link, count)?,
        };
        Ok(Self {
            typing,
            idle_processes,
            _others: others,
        })
    }

    fn look(&mut self, shots: usize, keys: usize) -> Result<[f64; LOOKS.len()]> {
        let client = &mut self.typing.link.client;
        let shot = one_shot::p50(shots, || one_shot::served(client))?;
        let key = median(&self.typing.times(keys)?);
        Ok([shot, key, self.idle_processes.memory_each])
    }
}

impl Drop for Grown {
    fn drop(&mut self) {
        // On failure the server ends them.
        let _ = self.idle_processes.terminate(&mut self.typing.link.client);
    }
}
