//! The same with more and more processes or connections standing by: what one of them costs stays
//! the same.

use anyhow::Result;

use super::one_shot;
use super::typing::{self, ECHO, Typist};
use crate::bench::bound::Bound;
use crate::bench::client::Client;
use crate::bench::contest::compare;
use crate::bench::crowd::Crowd;
use crate::bench::line::{Line, Unit};
use crate::bench::relay::Relay;
use crate::bench::run::Bench;
use crate::bench::server::Candidate;
use crate::bench::stats::median;

/// How many there are on each level. Each has a server of its own, and these take turns like
/// everybody else.
type Levels = [usize; 3];

/// What stands by.
#[derive(Clone, Copy)]
enum Kind {
    /// Processes of one connection.
    Processes,
    /// Connections with a process each.
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
            Self::Processes => "standing by",
            Self::Connections => "connected",
        }
    }
}

/// What is looked at on each level, its unit, and the first level that others are compared with:
/// the fewest are too few to see in pages what each of them costs.
const LOOKS: [(&str, Unit, usize); 3] = [
    ("one-shot p50", Unit::Millis, 0),
    ("typing p50", Unit::Millis, 0),
    ("memory each", Unit::Bytes, 1),
];

/// All looks on the first level, then all on the second, and so on.
const NUMBERS: usize = size_of::<Levels>() / size_of::<usize>() * LOOKS.len();

/// What counts as flat: so many times what it was with the fewest. Less than that is what two runs
/// of the same thing differ by.
const FLAT: f64 = 1.25;

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let mut lines = grow(bench, Kind::Processes)?;
    lines.extend(grow(bench, Kind::Connections)?);
    Ok(lines)
}

fn grow(bench: &Bench, kind: Kind) -> Result<Vec<Line>> {
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
            lines.push(Line {
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

/// A typist among many.
struct Grown {
    typist: Typist,
    crowd: Crowd,
    /// Held open.
    _others: Vec<Client>,
}

impl Grown {
    fn new(candidate: Candidate<'_>, kind: Kind, count: usize) -> Result<Self> {
        let mut typist = Typist::new(candidate)?;
        let (crowd, others) = match kind {
            Kind::Processes => (Crowd::gather(&mut typist.link, count)?, Vec::new()),
            Kind::Connections => Crowd::gather_apart(&mut typist.link, count)?,
        };
        Ok(Self {
            typist,
            crowd,
            _others: others,
        })
    }

    fn look(&mut self, shots: usize, keys: usize) -> Result<[f64; LOOKS.len()]> {
        let client = &mut self.typist.link.client;
        let shot = one_shot::p50(shots, || one_shot::served(client))?;
        let key = median(&self.typist.times(keys)?);
        Ok([shot, key, self.crowd.memory_each])
    }
}

impl Drop for Grown {
    fn drop(&mut self) {
        // If it fails, the end of the server is what ends them.
        let _ = self.crowd.dismiss(&mut self.typist.link.client);
    }
}
