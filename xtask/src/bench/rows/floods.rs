//! Large amounts of output, with every byte counted at the client: from a pipe, through
//! `outpost run` without a server, and from a PTY.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::OpenptFlags;

use crate::bench::client::{Client, ConnectedServer, MAX_READ, Start, decode};
use crate::bench::measurement::{Bound, Measurement, Unit};
use crate::bench::message::Message;
use crate::bench::pattern::{Pattern, StreamCheck};
use crate::bench::programs::{Relay, flood_command};
use crate::bench::rounds::{alternate, compare, rate};
use crate::bench::run::Bench;

/// The most bytes per read of a pipe.
const READ_PIPE: usize = 256 * 1024;

/// The most bytes per read of a PTY.
const READ_PTY: usize = 64 * 1024;

/// Measures a flood from a pipe.
pub(super) fn flood(bench: &Bench) -> Result<Vec<Measurement>> {
    let bytes = bench.amount(1 << 30, 1 << 27);
    let command = flood_command(Pattern::Raw, bytes)?;
    let argv: Vec<&str> = command.iter().map(String::as_str).collect();
    let relay = Relay::start(&argv)?;
    let bare = || {
        timed(Pattern::Raw, bytes, |check| {
            let mut socket = relay.connect()?;
            // Equal to our client's.
            check.read_all(MAX_READ, |buffer| socket.read(buffer))
        })
    };
    let medians = compare(
        bench,
        bench.rounds,
        Some(Box::new(bare)),
        ConnectedServer::open,
        |link| served(&mut link.client, &argv, Pattern::Raw, bytes),
    )?;
    let bounds = vec![Bound::RatioAtLeast(0.35)];
    let name = "flood of output, JSON frames";
    Ok(medians.lines([(name, Unit::BytesPerSecond, bounds)]))
}

/// Measures a flood through `outpost run`, without a server.
pub(super) fn embedded(bench: &Bench) -> Result<Vec<Measurement>> {
    let bytes = bench.amount(1 << 30, 1 << 27);
    let flood = flood_command(Pattern::Raw, bytes)?;
    let piped = |command: &mut Command| {
        timed(Pattern::Raw, bytes, |check| {
            let mut child = command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()
                .context("starting the flood")?;
            let mut stdout = child.stdout.take().context("a pipe was asked for")?;
            check.read_all(READ_PIPE, |buffer| stdout.read(buffer))?;
            ensure!(child.wait()?.success(), "the flood failed");
            Ok(())
        })
    };
    let bare = || piped(Command::new(&flood[0]).args(&flood[1..]));
    let ours = || piped(Command::new(&bench.binary).args(["run", "--"]).args(&flood));
    let sides = [Some(Box::new(bare) as _), Some(Box::new(ours) as _), None];
    let medians = alternate(bench, bench.rounds, sides)?;
    let bounds = vec![Bound::RatioAtLeast(0.3)];
    let name = "flood through outpost run";
    Ok(medians.lines([(name, Unit::BytesPerSecond, bounds)]))
}

/// Measures a flood from a PTY.
pub(super) fn pty(bench: &Bench) -> Result<Vec<Measurement>> {
    let bytes = bench.amount(128 << 20, 16 << 20);
    let command = flood_command(Pattern::Lines, bytes)?;
    let argv: Vec<&str> = command.iter().map(String::as_str).collect();
    let medians = compare(
        bench,
        bench.rounds,
        Some(Box::new(|| pty_bare(&argv, bytes))),
        ConnectedServer::open,
        |link| served(&mut link.client, &argv, Pattern::Lines, bytes),
    )?;
    let bounds = vec![Bound::RatioAtLeast(0.9)];
    Ok(medians.lines([("PTY flood", Unit::BytesPerSecond, bounds)]))
}

/// Measures how fast `read` gets a flood of `bytes` written bytes.
fn timed(
    pattern: Pattern,
    bytes: usize,
    read: impl FnOnce(&mut StreamCheck) -> Result<()>,
) -> Result<[f64; 1]> {
    let mut check = StreamCheck::new(pattern);
    let begun = Instant::now();
    read(&mut check)?;
    let time = begun.elapsed();
    Ok([rate(check.complete(bytes)?, time)])
}

/// Starts a program that writes `bytes` and reads until it has closed. Lines come from a PTY.
pub(super) fn served(
    client: &mut Client,
    argv: &[&str],
    pattern: Pattern,
    bytes: usize,
) -> Result<[f64; 1]> {
    let mut buffer = Vec::new();
    timed(pattern, bytes, |check| {
        let (_, name) = client.start(Start {
            argv,
            tty: pattern == Pattern::Lines,
            ..Start::default()
        })?;
        let mut last = 0;
        loop {
            match client.next()? {
                Message::Output {
                    process,
                    seq,
                    chunk,
                } if process == name => {
                    last += 1;
                    ensure!(
                        seq == last,
                        "{seq} came where {last} was due: output is lost"
                    );
                    check.add(decode(chunk, &mut buffer)?)?;
                }
                Message::Exited { process, code } if process == name => {
                    ensure!(code == 0, "the flood ended with {code}");
                }
                Message::Closed { process } if process == name => return Ok(()),
                _ => {}
            }
        }
    })
}

fn pty_bare(argv: &[&str], bytes: usize) -> Result<[f64; 1]> {
    let mut flood = None;
    let measured = timed(Pattern::Lines, bytes, |check| {
        let (ours, theirs) = open_pty().context("opening a terminal")?;
        let child = Command::new(argv[0])
            .args(&argv[1..])
            .stdin(Stdio::from(theirs.try_clone()?))
            .stderr(Stdio::from(theirs.try_clone()?))
            .stdout(Stdio::from(theirs))
            .spawn();
        flood = Some(child.context("starting the flood")?);
        check.read_all(READ_PTY, |buffer| match rustix::io::read(&ours, buffer) {
            // EIO is the end of file of a PTY master.
            Err(Errno::IO) => Ok(0),
            read => Ok(read?),
        })
    })?;
    let status = flood.context("no flood")?.wait()?;
    ensure!(status.success(), "the flood ended with {status}");
    Ok(measured)
}

fn open_pty() -> Result<(OwnedFd, OwnedFd)> {
    let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    rustix::pty::grantpt(&ours)?;
    rustix::pty::unlockpt(&ours)?;
    let name = rustix::pty::ptsname(&ours, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name, flags, Mode::empty())?;
    Ok((ours, theirs))
}
