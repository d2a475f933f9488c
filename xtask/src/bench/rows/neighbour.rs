//! A keystroke and its echo during a flood of another process on the same connection.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::typing::Typing;
use crate::bench::bound::Bound;
use crate::bench::client::{Base64Decoder, Start};
use crate::bench::flood_writer;
use crate::bench::measurement::{Measurement, Unit};
use crate::bench::message::Message;
use crate::bench::pattern::{Pattern, StreamCheck};
use crate::bench::rounds::compare;
use crate::bench::run::Bench;
use crate::bench::server::Candidate;
use crate::bench::stats::{millis, percentile};

/// Reading time between keystrokes, so that the flood is at full speed.
const PAUSE: Duration = Duration::from_millis(2);

pub(super) fn run(bench: &Bench) -> Result<Vec<Measurement>> {
    let count = bench.amount(400, 100);
    let medians = compare(bench, bench.rounds, None, Beside::new, |beside| {
        let times = beside.times(count)?;
        Ok([percentile(&times, 50), percentile(&times, 99)])
    })?;
    let line = |at: usize, name: &str, bounds| Measurement {
        name: format!("typing during a flood, {name}"),
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

/// A typing client with a flooding process on the same connection.
struct Beside {
    typing: Typing,
    flood: String,
    decoder: Base64Decoder,
    check: StreamCheck,
}

impl Beside {
    fn new(candidate: Candidate<'_>) -> Result<Self> {
        let mut typing = Typing::new(candidate)?;
        let command = flood_writer::command(Pattern::Raw, usize::MAX)?;
        let argv: Vec<&str> = command.iter().map(String::as_str).collect();
        let (_, flood) = typing.link.client.start(Start {
            argv: &argv,
            ..Start::default()
        })?;
        Ok(Self {
            typing,
            flood,
            decoder: Base64Decoder::default(),
            check: StreamCheck::new(Pattern::Raw),
        })
    }

    fn times(&mut self, count: usize) -> Result<Vec<f64>> {
        (0..count)
            .map(|_| {
                let begun = Instant::now();
                while begun.elapsed() < PAUSE {
                    self.take()?;
                }
                self.typing.link.client.type_key(&self.typing.echo);
                let begun = Instant::now();
                self.typing.link.client.flush()?;
                while !self.take()? {}
                Ok(millis(begun.elapsed()))
            })
            .collect()
    }

    /// Handles the next message. Returns true for an echo.
    fn take(&mut self) -> Result<bool> {
        match self.typing.link.client.next()? {
            Message::Output { process, .. } if process == self.typing.echo => return Ok(true),
            Message::Output { process, chunk, .. } if process == self.flood => {
                self.check.add(self.decoder.decode(chunk)?)?;
            }
            Message::Closed { process } => {
                ensure!(process != self.flood, "the flood has ended");
            }
            _ => {}
        }
        Ok(false)
    }
}
