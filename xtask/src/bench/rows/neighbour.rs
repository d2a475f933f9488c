//! A keystroke and its echo while another process of the same connection never stops writing.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::typing::Typist;
use crate::bench::bound::Bound;
use crate::bench::client::{Decoder, Start};
use crate::bench::contest::compare;
use crate::bench::line::{Line, Unit};
use crate::bench::message::Message;
use crate::bench::pattern::{Pattern, Tally};
use crate::bench::pour;
use crate::bench::run::Bench;
use crate::bench::server::Candidate;
use crate::bench::stats::{millis, percentile};

/// How long we only read between two keystrokes, so that each meets the flood at full speed.
const PAUSE: Duration = Duration::from_millis(2);

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let count = bench.amount(400, 100);
    let medians = compare(bench, bench.rounds, None, Beside::new, |beside| {
        let times = beside.times(count)?;
        Ok([percentile(&times, 50), percentile(&times, 99)])
    })?;
    let line = |at: usize, name: &str, bounds| Line {
        name: format!("typing beside a flood, {name}"),
        unit: Unit::Millis,
        bare: None,
        outpost: medians.outpost[at],
        peer: medians.peer.map(|times| times[at]),
        bounds,
    };
    Ok(vec![
        line(0, "p50", vec![]),
        line(1, "p99", vec![Bound::AtMost(20.0)]),
    ])
}

/// A typist, and the neighbour on the same connection.
struct Beside {
    typist: Typist,
    flood: String,
    decoder: Decoder,
    tally: Tally,
}

impl Beside {
    fn new(candidate: Candidate<'_>) -> Result<Self> {
        let mut typist = Typist::new(candidate)?;
        let command = pour::command(Pattern::Raw, usize::MAX)?;
        let argv: Vec<&str> = command.iter().map(String::as_str).collect();
        let (_, flood) = typist.link.client.start(Start {
            argv: &argv,
            ..Start::default()
        })?;
        Ok(Self {
            typist,
            flood,
            decoder: Decoder::default(),
            tally: Tally::new(Pattern::Raw),
        })
    }

    fn times(&mut self, count: usize) -> Result<Vec<f64>> {
        (0..count)
            .map(|_| {
                let begun = Instant::now();
                while begun.elapsed() < PAUSE {
                    self.take()?;
                }
                self.typist.link.client.press(&self.typist.echo);
                let begun = Instant::now();
                self.typist.link.client.flush()?;
                while !self.take()? {}
                Ok(millis(begun.elapsed()))
            })
            .collect()
    }

    /// Takes the next thing the server says; whether it was an echo.
    fn take(&mut self) -> Result<bool> {
        match self.typist.link.client.next()? {
            Message::Output { process, .. } if process == self.typist.echo => return Ok(true),
            Message::Output { process, chunk, .. } if process == self.flood => {
                self.tally.add(self.decoder.decode(chunk)?)?;
            }
            Message::Closed { process } => {
                ensure!(process != self.flood, "the flood has ended");
            }
            _ => {}
        }
        Ok(false)
    }
}
