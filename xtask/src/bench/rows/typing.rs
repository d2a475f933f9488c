//! A keystroke and its echo.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use anyhow::Result;

use crate::bench::bound::Bound;
use crate::bench::client::Start;
use crate::bench::connected_server::ConnectedServer;
use crate::bench::measurement::{Measurement, Unit};
use crate::bench::message::Message;
use crate::bench::relay::Relay;
use crate::bench::rounds::compare;
use crate::bench::run::Bench;
use crate::bench::server::Candidate;
use crate::bench::stats::{millis, percentile};

/// Echoes its input.
pub(super) const ECHO: &[&str] = &["/usr/bin/cat"];

pub(super) fn run(bench: &Bench) -> Result<Vec<Measurement>> {
    let count = bench.amount(2000, 300);
    let relay = Relay::start(ECHO)?;
    let mut socket = relay.connect()?;
    let medians = compare(
        bench,
        bench.rounds,
        Some(&mut || p50_and_p99(&bare(&mut socket, count)?)),
        Typing::new,
        |typing| p50_and_p99(&typing.times(count)?),
    )?;
    let line = |at: usize, name: &str, bound| Measurement {
        name: format!("typing, {name}"),
        unit: Unit::Millis,
        bare: medians.bare.map(|times| times[at]),
        outpost: medians.outpost[at],
        peer: medians.peer.map(|times| times[at]),
        bounds: vec![Bound::RatioAtMost(bound)],
    };
    Ok(vec![line(0, "p50", 2.0), line(1, "p99", 4.0)])
}

fn p50_and_p99(times: &[f64]) -> Result<[f64; 2]> {
    Ok([percentile(times, 50), percentile(times, 99)])
}

/// Types into a relay.
pub(super) fn bare(socket: &mut TcpStream, count: usize) -> Result<Vec<f64>> {
    let mut key = [b'x'];
    (0..count)
        .map(|_| {
            let begun = Instant::now();
            socket.write_all(&key)?;
            socket.read_exact(&mut key)?;
            Ok(millis(begun.elapsed()))
        })
        .collect()
}

/// A client with an echoing process.
pub(super) struct Typing {
    pub(super) link: ConnectedServer,
    pub(super) echo: String,
}

impl Typing {
    pub(super) fn new(candidate: Candidate<'_>) -> Result<Self> {
        let mut link = ConnectedServer::open(candidate)?;
        let (id, echo) = link.client.start(Start {
            argv: ECHO,
            pipe_stdin: true,
            ..Start::default()
        })?;
        link.client.wait_response(id)?;
        Ok(Self { link, echo })
    }

    /// Returns the latency of each echo. Also awaits the response to the write, uncounted, so that
    /// the next keystroke does not pay for it.
    pub(super) fn times(&mut self, count: usize) -> Result<Vec<f64>> {
        (0..count).map(|_| self.type_key()).collect()
    }

    fn type_key(&mut self) -> Result<f64> {
        let id = self.link.client.type_key(&self.echo);
        let begun = Instant::now();
        let mut echoed = None;
        let mut answered = false;
        while !answered || echoed.is_none() {
            match self.link.client.next()? {
                Message::Output { process, .. } if process == self.echo => {
                    echoed = Some(millis(begun.elapsed()));
                }
                Message::Response { id: of } => answered |= of == id,
                _ => {}
            }
        }
        Ok(echoed.unwrap_or_default())
    }
}
