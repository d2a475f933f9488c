//! A flood from a PTY.

use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::OpenptFlags;

use super::flood;
use crate::bench::bound::Bound;
use crate::bench::client::Start;
use crate::bench::connected_server::ConnectedServer;
use crate::bench::flood_writer;
use crate::bench::measurement::{Measurement, Unit};
use crate::bench::pattern::{Pattern, StreamCheck};
use crate::bench::rounds::compare;
use crate::bench::run::Bench;
use crate::bench::stats::rate;

/// The most bytes per read.
const READ: usize = 64 * 1024;

pub(super) fn run(bench: &Bench) -> Result<Vec<Measurement>> {
    let bytes = bench.amount(128 << 20, 16 << 20);
    let command = flood_writer::command(Pattern::Lines, bytes)?;
    let argv: Vec<&str> = command.iter().map(String::as_str).collect();
    let medians = compare(
        bench,
        bench.rounds,
        Some(&mut || Ok([bare(&argv, bytes)?])),
        ConnectedServer::open,
        |link| {
            let start = Start {
                argv: &argv,
                tty: true,
                ..Start::default()
            };
            let check = StreamCheck::new(Pattern::Lines);
            Ok([flood::served(&mut link.client, start, check, bytes)?])
        },
    )?;
    Ok(vec![Measurement {
        name: "PTY flood".to_owned(),
        unit: Unit::BytesPerSecond,
        bare: medians.bare.map(|[rate]| rate),
        outpost: medians.outpost[0],
        peer: medians.peer.map(|[rate]| rate),
        bounds: vec![Bound::RatioAtLeast(0.9)],
    }])
}

fn bare(argv: &[&str], bytes: usize) -> Result<f64> {
    let mut check = StreamCheck::new(Pattern::Lines);
    let mut buffer = vec![0; READ];
    let begun = Instant::now();
    let (ours, theirs) = open().context("opening a terminal")?;
    let mut child = Command::new(argv[0])
        .args(&argv[1..])
        .stdin(Stdio::from(theirs.try_clone()?))
        .stderr(Stdio::from(theirs.try_clone()?))
        .stdout(Stdio::from(theirs))
        .spawn()
        .context("starting the flood")?;
    loop {
        match rustix::io::read(&ours, &mut buffer) {
            // EIO is the end of file of a PTY master.
            Ok(0) | Err(Errno::IO) => break,
            Ok(read) => check.add(&buffer[..read])?,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("reading a terminal"),
        }
    }
    let time = begun.elapsed();
    let status = child.wait()?;
    ensure!(status.success(), "the flood ended with {status}");
    let (found, expected) = (check.bytes, check.expect(bytes));
    ensure!(found == expected, "{found} bytes of {expected} arrived");
    Ok(rate(found, time))
}

fn open() -> Result<(OwnedFd, OwnedFd)> {
    let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    rustix::pty::grantpt(&ours)?;
    rustix::pty::unlockpt(&ours)?;
    let name = rustix::pty::ptsname(&ours, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name, flags, Mode::empty())?;
    Ok((ours, theirs))
}
