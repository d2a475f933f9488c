//! One command after the other, from its start to the last that is heard of it.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::bench::bound::Bound;
use crate::bench::client::{Client, ENVIRONMENT, Start};
use crate::bench::contest::compare;
use crate::bench::line::{Line, Unit};
use crate::bench::link::Link;
use crate::bench::message::Message;
use crate::bench::run::Bench;
use crate::bench::stats::{median, millis};

pub(super) const COMMAND: &str = "/usr/bin/true";

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let count = bench.amount(300, 50);
    let medians = compare(
        bench,
        bench.rounds,
        Some(&mut || Ok([p50(count, bare)?])),
        Link::open,
        |link| Ok([p50(count, || served(&mut link.client))?]),
    )?;
    Ok(vec![Line {
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

/// What has to be done to know that a command has ended and all it wrote, on the shortest way.
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
    served_as(client, Start::default())
}

/// The same, in a way of its own.
pub(super) fn served_as(client: &mut Client, start: Start<'_>) -> Result<Duration> {
    let (_, name) = client.start(Start {
        argv: &[COMMAND],
        ..start
    })?;
    // Writing the request down is the client's own business.
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
