//! Latency of keystrokes, of requests behind a long poll, and of reconnects.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::commands::COMMAND;
use crate::bench::client::{Client, Interactive, Start, decode};
use crate::bench::measurement::{Bound, Measurement, Unit};
use crate::bench::message::Message;
use crate::bench::pattern::{Pattern, StreamCheck};
use crate::bench::programs::{Relay, flood_command};
use crate::bench::rounds::{compare, median, millis, percentile};
use crate::bench::run::Bench;
use crate::bench::server::Candidate;

/// Echoes its input.
pub(super) const ECHO: &[&str] = &["/usr/bin/cat"];

/// Writes nothing.
const SILENT: &[&str] = &["/usr/bin/sleep", "300"];

/// Reading time between keystrokes, so that a flood is at full speed.
const PAUSE: Duration = Duration::from_millis(2);

/// Measures a keystroke and its echo.
pub(super) fn typing(bench: &Bench) -> Result<Vec<Measurement>> {
    let count = bench.amount(2000, 300);
    let relay = Relay::start(ECHO)?;
    let mut socket = relay.connect()?;
    let medians = compare(
        bench,
        bench.rounds,
        Some(Box::new(move || {
            p50_and_p99(&echo_bare(&mut socket, count)?)
        })),
        |candidate| Interactive::open(candidate, ECHO),
        |echo| p50_and_p99(&echo_served(echo, count)?),
    )?;
    let at_most = |times| vec![Bound::RatioAtMost(times)];
    Ok(medians.lines([
        ("typing, p50", Unit::Millis, at_most(2.0)),
        ("typing, p99", Unit::Millis, at_most(4.0)),
    ]))
}

fn p50_and_p99(times: &[f64]) -> Result<[f64; 2]> {
    Ok([percentile(times, 50), percentile(times, 99)])
}

/// Types into a relay.
pub(super) fn echo_bare(socket: &mut TcpStream, count: usize) -> Result<Vec<f64>> {
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

/// Returns the latency of each echo. Also awaits the response to the write, uncounted, so that the
/// next keystroke does not pay for it.
pub(super) fn echo_served(echo: &mut Interactive, count: usize) -> Result<Vec<f64>> {
    let type_key = |_| {
        let id = echo.link.client.type_key(&echo.process)?;
        let begun = Instant::now();
        let mut echoed = None;
        let mut answered = false;
        while !answered || echoed.is_none() {
            match echo.link.client.next()? {
                Message::Output { process, .. } if process == echo.process => {
                    echoed = Some(millis(begun.elapsed()));
                }
                Message::Response { id: of, .. } => answered |= of == id,
                _ => {}
            }
        }
        Ok(echoed.unwrap_or_default())
    };
    (0..count).map(type_key).collect()
}

/// Measures a keystroke and its echo during a flood of another process on the same connection.
pub(super) fn neighbour(bench: &Bench) -> Result<Vec<Measurement>> {
    let count = bench.amount(400, 100);
    let medians = compare(bench, bench.rounds, None, BesideFlood::open, |beside| {
        p50_and_p99(&beside.times(count)?)
    })?;
    let bounds = vec![Bound::AtMost(20.0)];
    Ok(medians.lines([
        ("typing during a flood, p50", Unit::Millis, Vec::new()),
        ("typing during a flood, p99", Unit::Millis, bounds),
    ]))
}

/// An echoing process with a flooding one on the same connection.
struct BesideFlood {
    echo: Interactive,
    flood: String,
    /// Decoded output.
    buffer: Vec<u8>,
    check: StreamCheck,
}

impl BesideFlood {
    fn open(candidate: Candidate<'_>) -> Result<Self> {
        let mut echo = Interactive::open(candidate, ECHO)?;
        let command = flood_command(Pattern::Raw, usize::MAX)?;
        let argv: Vec<&str> = command.iter().map(String::as_str).collect();
        let (_, flood) = echo.link.client.start(Start::new(&argv))?;
        Ok(Self {
            echo,
            flood,
            buffer: Vec::new(),
            check: StreamCheck::new(Pattern::Raw),
        })
    }

    fn times(&mut self, count: usize) -> Result<Vec<f64>> {
        let type_key = |_| {
            let begun = Instant::now();
            while begun.elapsed() < PAUSE {
                self.take()?;
            }
            self.echo.link.client.type_key(&self.echo.process)?;
            let begun = Instant::now();
            self.echo.link.client.flush()?;
            while !self.take()? {}
            Ok(millis(begun.elapsed()))
        };
        (0..count).map(type_key).collect()
    }

    /// Handles the next message. Returns true for an echo.
    fn take(&mut self) -> Result<bool> {
        match self.echo.link.client.next()? {
            Message::Output { process, .. } if process == self.echo.process => return Ok(true),
            Message::Output { process, chunk, .. } if process == self.flood => {
                self.check.add(decode(chunk, &mut self.buffer)?)?;
            }
            Message::Closed { process } => {
                ensure!(process != self.flood, "the flood has ended");
            }
            _ => {}
        }
        Ok(false)
    }
}

/// Measures a request behind a long poll.
pub(super) fn long_poll(bench: &Bench) -> Result<Vec<Measurement>> {
    let open = |candidate| Interactive::open(candidate, SILENT);
    // Each kind has its own long poll, because a sequential server is fast again after the first.
    let medians = compare(bench, bench.rounds, None, open, |silent| {
        let read = behind_poll(silent, |client, id| client.read(id, 0))?;
        let write = behind_poll(silent, Client::type_key)?;
        let start = behind_poll(silent, |client, _| {
            Ok(client.start(Start::new(&[COMMAND]))?.0)
        })?;
        Ok([read.max(write).max(start)])
    })?;
    let name = "request behind a long poll, worst of 3 kinds";
    Ok(medians.lines([(name, Unit::Millis, vec![Bound::AtMost(2.0)])]))
}

/// Measures the request that `probe` queues, behind a long poll of the same process.
fn behind_poll(
    silent: &mut Interactive,
    probe: impl FnOnce(&mut Client, &str) -> Result<u64>,
) -> Result<f64> {
    let client = &mut silent.link.client;
    let poll = client.read(&silent.process, 2000)?;
    client.flush()?;
    let id = probe(client, &silent.process)?;
    let begun = Instant::now();
    let mut polled = false;
    loop {
        match client.next()? {
            Message::Response { id: of, .. } if of == id => break,
            Message::Response { id: of, .. } => polled |= of == poll,
            _ => {}
        }
    }
    let time = millis(begun.elapsed());
    // An early response to the long poll would invalidate the measurement.
    ensure!(
        !polled || time >= 1000.0,
        "the long poll was answered after {time:.1} ms"
    );
    Ok(time)
}

/// Measures reconnecting, resuming the session and reading missed output.
pub(super) fn reconnect(bench: &Bench) -> Result<Vec<Measurement>> {
    let times = bench.amount(200, 30);
    let open = |candidate| Interactive::open(candidate, ECHO);
    let medians = compare(bench, bench.rounds, None, open, |echo| {
        let all: Result<Vec<f64>> = (0..times).map(|_| reconnect_once(echo)).collect();
        Ok([median(&all?)])
    })?;
    let name = "reconnect and resume, p50";
    Ok(medians.lines([(name, Unit::Millis, vec![Bound::AtMost(2.0)])]))
}

/// Measures from the cut to the response of the read on the new connection.
fn reconnect_once(echo: &mut Interactive) -> Result<f64> {
    let client = &mut echo.link.client;
    let id = client.type_key(&echo.process)?;
    client.wait_response(id)?;
    let begun = Instant::now();
    client.disconnect()?;
    *client = Client::connect(echo.link.server.url(), Some(&client.session))?;
    let read = client.read(&echo.process, 0)?;
    client.wait_response(read)?;
    Ok(millis(begun.elapsed()))
}
