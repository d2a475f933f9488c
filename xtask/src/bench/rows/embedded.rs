//! A flood through `outpost run`, without a server.

use std::ffi::OsStr;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::bench::bound::Bound;
use crate::bench::flood_writer;
use crate::bench::measurement::{Measurement, Unit};
use crate::bench::pattern::{Pattern, StreamCheck};
use crate::bench::run::Bench;
use crate::bench::stats::{median, rate};

/// The most bytes per read.
const READ: usize = 256 * 1024;

pub(super) fn run(bench: &Bench) -> Result<Vec<Measurement>> {
    let bytes = bench.amount(1 << 30, 1 << 27);
    let pouring = flood_writer::command(Pattern::Raw, bytes)?;
    let outpost = bench.candidates.outpost.as_os_str();
    let embedded = [outpost, OsStr::new("run"), OsStr::new("--")];
    let pouring: Vec<&OsStr> = pouring.iter().map(OsStr::new).collect();
    let embedded: Vec<&OsStr> = embedded.into_iter().chain(pouring.clone()).collect();
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds {
        bare.push(piped(&pouring, bytes)?);
        ours.push(piped(&embedded, bytes)?);
    }
    Ok(vec![Measurement {
        name: "flood through outpost run".to_owned(),
        unit: Unit::BytesPerSecond,
        bare: Some(median(&bare)),
        outpost: median(&ours),
        peer: None,
        bounds: vec![Bound::RatioAtLeast(0.3)],
    }])
}

/// Reads the stdout of a program to its end.
fn piped(argv: &[&OsStr], bytes: usize) -> Result<f64> {
    let mut check = StreamCheck::new(Pattern::Raw);
    let mut buffer = vec![0; READ];
    let begun = Instant::now();
    let mut child = Command::new(argv[0])
        .args(&argv[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting the flood")?;
    let mut stdout = child.stdout.take().context("a pipe was asked for")?;
    loop {
        match stdout.read(&mut buffer)? {
            0 => break,
            read => check.add(&buffer[..read])?,
        }
    }
    ensure!(child.wait()?.success(), "the flood failed");
    let time = begun.elapsed();
    let (found, expected) = (check.bytes, check.expect(bytes));
    ensure!(found == expected, "{found} bytes of {expected} arrived");
    Ok(rate(found, time))
}
