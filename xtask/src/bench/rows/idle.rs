//! Memory and CPU of an idle server and of idle processes, and latency with more and more of them.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::commands::{p50, run_bare, run_served};
use super::latency::{ECHO, echo_bare, echo_served};
use crate::bench::client::{Client, ConnectedServer, Interactive, Start};
use crate::bench::machine;
use crate::bench::measurement::{Bound, KIB, MIB, Measurement, Unit};
use crate::bench::message::Message;
use crate::bench::programs::Relay;
use crate::bench::rounds::{compare, median, millis};
use crate::bench::run::Bench;
use crate::bench::server::Candidate;

/// Writes one line and is idle. Exits if the server leaves it behind.
const IDLE: &[&str] = &["/bin/sh", "-c", "echo here; exec sleep 300"];

/// Starts in flight.
const AT_ONCE: usize = 32;

/// The delay before memory is measured.
const SETTLE: Duration = Duration::from_millis(300);

/// The observation time.
const WATCH: Duration = Duration::from_secs(2);

/// CPU time in [`WATCH`] that still counts as idle.
const IDLE_MILLIS: f64 = 1.0;

/// Memory varies little between servers.
const ROUNDS: usize = 3;

/// Measures memory and CPU.
pub(super) fn idle(bench: &Bench) -> Result<Vec<Measurement>> {
    let count = bench.amount(200, 50);
    let rounds = bench.rounds.min(ROUNDS);
    let medians = compare(bench, rounds, None, Ok, |candidate| {
        let server = candidate.start()?;
        let pid = server.pid();
        let empty = memory_when_idle(pid)?;
        let client = Client::connect(server.url(), None)?;
        let mut link = ConnectedServer { client, server };
        let idle = IdleProcesses::start(&mut link, false, count)?;
        let before = cpu_time(pid)?;
        thread::sleep(WATCH);
        let busy = cpu_time(pid)? - before;
        idle.terminate(&mut link.client)?;
        Ok([empty, idle.memory_each, millis(busy)])
    })?;
    let cpu = format!("idle: CPU in {WATCH:?}");
    Ok(medians.lines([
        (
            "idle: empty server",
            Unit::Bytes,
            vec![Bound::AtMost(12.0 * MIB)],
        ),
        (
            "idle: each process",
            Unit::Bytes,
            vec![Bound::AtMost(16.0 * KIB)],
        ),
        (&*cpu, Unit::Millis, vec![Bound::AtMost(IDLE_MILLIS)]),
    ]))
}

/// Processes that wrote one line and are idle.
struct IdleProcesses {
    names: Vec<String>,
    /// The server's memory per process, in bytes.
    memory_each: f64,
    /// Keeps further connections open, with one process each; these end with the server.
    _others: Vec<Client>,
}

/// A kind of load: processes of one connection, or connections with one process each.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    on_connections: bool,
    /// The numbers per level. Each level has its own server, and the levels take turns.
    levels: [usize; 3],
}

const PROCESSES: Load = Load {
    name: "idle",
    on_connections: false,
    levels: [10, 100, 1000],
};

const CONNECTIONS: Load = Load {
    name: "connected",
    on_connections: true,
    levels: [1, 10, 100],
};

impl IdleProcesses {
    /// Starts `count` processes, after those that pay for one-time allocations.
    fn start(link: &mut ConnectedServer, on_connections: bool, count: usize) -> Result<Self> {
        let ConnectedServer { client, server } = link;
        let mut names = start_idle(client, 1)?;
        let mut others = Vec::new();
        let mut join = |count| -> Result<()> {
            for _ in 0..count {
                let mut other = Client::connect(server.url(), None)?;
                start_idle(&mut other, 1)?;
                others.push(other);
            }
            Ok(())
        };
        if on_connections {
            join(1)?;
        }
        let before = memory_when_idle(server.pid())?;
        if on_connections {
            join(count)?;
        } else {
            names.extend(start_idle(client, count)?);
        }
        Ok(Self {
            names,
            memory_each: (memory_when_idle(server.pid())? - before) / count as f64,
            _others: others,
        })
    }

    /// Terminates the processes. May fail; the server ends them anyway.
    fn terminate(&self, client: &mut Client) -> Result<()> {
        for names in self.names.chunks(AT_ONCE) {
            let mut last = 0;
            for name in names {
                last = client.request("process/terminate", &json!({"processId": name}))?;
            }
            client.wait_response(last)?;
        }
        Ok(())
    }
}

fn start_idle(client: &mut Client, count: usize) -> Result<Vec<String>> {
    let mut names = Vec::with_capacity(count);
    let mut heard = 0;
    while heard < count {
        while names.len() < count.min(heard + AT_ONCE) {
            let (_, name) = client.start(Start::new(IDLE))?;
            names.push(name);
        }
        match client.next()? {
            Message::Output { .. } => heard += 1,
            Message::Exited { code, .. } => bail!("an idle process exited with {code}"),
            _ => {}
        }
    }
    Ok(names)
}

/// Measures resident memory in bytes, after a delay.
fn memory_when_idle(pid: i32) -> Result<f64> {
    thread::sleep(SETTLE);
    memory(pid, "VmRSS")
}

/// Reads a field of `/proc/PID/status`, in bytes.
pub(super) fn memory(pid: i32, field: &'static str) -> Result<f64> {
    let status = machine::read(&format!("/proc/{pid}/status"))?;
    let memory = machine::field(&status, ':', field).context(field)?;
    let kib: f64 = memory.trim_end_matches(" kB").parse()?;
    Ok(kib * KIB)
}

/// CPU time of all threads, from `schedstat`: `stat` counts in hundredths of a second.
fn cpu_time(pid: i32) -> Result<Duration> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may exit after the listing.
        if let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) {
            let ran = text.split_whitespace().next().context("empty schedstat")?;
            nanoseconds += ran.parse::<u64>()?;
        }
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// The measured values with unit and base level. Memory uses the second level as its base, since
/// the first has too few processes for page granularity.
const LOOKS: [(&str, Unit, usize); 3] = [
    ("one-shot p50", Unit::Millis, 0),
    ("typing p50", Unit::Millis, 0),
    ("memory each", Unit::Bytes, 1),
];

/// The values of the first level, then of the second, and so on.
const NUMBERS: usize = 3 * LOOKS.len();

/// The maximum ratio to the base level that counts as flat. Two runs of one build differ by less.
const FLAT: f64 = 1.25;

/// Measures latency and memory with more and more idle processes or connections.
pub(super) fn growth(bench: &Bench) -> Result<Vec<Measurement>> {
    let mut lines = grow(bench, PROCESSES)?;
    lines.extend(grow(bench, CONNECTIONS)?);
    Ok(lines)
}

fn grow(bench: &Bench, load: Load) -> Result<Vec<Measurement>> {
    let levels = load.levels;
    let shots = bench.amount(100, 20);
    let keys = bench.amount(500, 100);
    let relay = Relay::start(ECHO)?;
    let mut socket = relay.connect()?;
    let bare = move || {
        let shot = p50(shots, run_bare)?;
        let key = median(&echo_bare(&mut socket, keys)?);
        in_order(&levels.map(|_| [shot, key, 0.0]))
    };
    let open = |candidate| {
        let levels = levels.map(|count| Grown::new(candidate, load, count));
        levels.into_iter().collect::<Result<Vec<_>>>()
    };
    let medians = compare(bench, bench.rounds, Some(Box::new(bare)), open, |levels| {
        let looks = levels.iter_mut().map(|level| level.look(shots, keys));
        in_order(&looks.collect::<Result<Vec<_>>>()?)
    })?;

    let mut lines = Vec::new();
    for (look, (name, unit, first)) in LOOKS.into_iter().enumerate() {
        let place = |level: usize| level * LOOKS.len() + look;
        for (level, count) in levels.into_iter().enumerate().skip(first) {
            let at = place(level);
            let flat = Bound::Flat {
                times: FLAT,
                first: medians.outpost[place(first)],
                at: levels[first],
            };
            lines.push(Measurement {
                name: format!("{name}, {count} {}", load.name),
                unit,
                bare: medians.bare.map(|bare| bare[at]).filter(|bare| *bare > 0.0),
                outpost: medians.outpost[at],
                peer: medians.peer.map(|peer| peer[at]),
                bounds: Vec::from_iter((level > first).then_some(flat)),
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
    echo: Interactive,
    idle: IdleProcesses,
}

impl Grown {
    fn new(candidate: Candidate<'_>, load: Load, count: usize) -> Result<Self> {
        let mut echo = Interactive::open(candidate, ECHO)?;
        let idle = IdleProcesses::start(&mut echo.link, load.on_connections, count)?;
        Ok(Self { echo, idle })
    }

    fn look(&mut self, shots: usize, keys: usize) -> Result<[f64; LOOKS.len()]> {
        let client = &mut self.echo.link.client;
        let shot = p50(shots, || run_served(client, None))?;
        let key = median(&echo_served(&mut self.echo, keys)?);
        Ok([shot, key, self.idle.memory_each])
    }
}

impl Drop for Grown {
    fn drop(&mut self) {
        // On failure the server ends them.
        let _ = self.idle.terminate(&mut self.echo.link.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_has_run() {
        let us = std::process::id() as i32;
        assert!(memory_when_idle(us).unwrap() > 0.0);
        assert!(cpu_time(us).unwrap() > Duration::ZERO);
    }
}
