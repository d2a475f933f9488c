//! Sequential commands, from start to closed.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::bench::bound::Bound;
use crate::bench::client::{Client, ENVIRONMENT, Start};
use crate::bench::connected_server::ConnectedServer;
use crate::bench::measurement::{Measurement, Unit};
use crate::bench::message::Message;
use crate::bench::rounds::compare;
use crate::bench::run::Bench;
use crate::bench::stats::{median, millis};

pub(super) const COMMAND: &str = "/usr/bin/true";

pub(super) fn run(bench: &Bench) -> Result<Vec<Measurement>> {
    let count = bench.amount(300, 50);
    let medians = compare(
        bench,
        bench.rounds,
        Some(&mut || Ok([p50(count, bare)?])),
        ConnectedServer::open,
        |link| Ok([p50(count, || served(&mut link.client))?]),
    )?;
    Ok(vec![Measurement {
        name: "one-shot command, p50".to_owned(),
        unit: Unit::Millis,
        bare: medians.bare.map(|[time]| time),
        outpost: medians.outpost[0],
        peer: medians.peer.map(|[time]| time),
        bounds: vec![Bound::RatioAtMost(1.3), Bound::AboveAtMost(0.4)],
    }])
}

pub(super) fn p50(count: usize, mut once: impl FnMut() -> Result<Duration>) -> Result<f64> {
    let times: Result<Vec<f64>> = (0..count).map(|_| Ok(millis(once()?))).collect();
    Ok(median(&times?))
}

/// Runs a command without a server: spawn, read both pipes, wait.
pub(super) fn bare() -> Result<Duration> {
    let begun = Instant::now();
    run_bare()?;
    Ok(begun.elapsed())
}

pub(super) fn run_bare() -> Result<()> {
    let (variable, value) = ENVIRONMENT;
    let mut child = Command::new(COMMAND)
        .env_clear()
        .env(variable, value)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting a command")?;
    let mut output = Vec::new();
    if let (Some(mut stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) {
        stdout.read_to_end(&mut output)?;
        stderr.read_to_end(&mut output)?;
    }
    let status = child.wait()?;
    ensure!(status.success(), "{COMMAND} ended with {status}");
    Ok(())
}

pub(super) fn served(client: &mut Client) -> Result<Duration> {
    served_with(client, Start::default())
}

/// Runs a command on a server with further start parameters.
pub(super) fn served_with(client: &mut Client, start: Start<'_>) -> Result<Duration> {
    let (_, name) = client.start(Start {
        argv: &[COMMAND],
        ..start
    })?;
    // Encoding the request is not measured.
    let begun = Instant::now();
    loop {
        match client.next()? {
            Message::Exited { process, code } if process == name => {
                ensure!(code == 0, "{COMMAND} ended with {code}");
            }
            Message::Closed { process } if process == name => return Ok(begun.elapsed()),
            _ => {}
        }
    }
}
