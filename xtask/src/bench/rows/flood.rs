//! A flood from a pipe, with every byte counted at the client.

use std::io::Read as _;
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::bench::bound::Bound;
use crate::bench::client::{Base64Decoder, Client, Start};
use crate::bench::connected_server::ConnectedServer;
use crate::bench::flood_writer;
use crate::bench::measurement::{Measurement, Unit};
use crate::bench::message::Message;
use crate::bench::pattern::{Pattern, StreamCheck};
use crate::bench::relay::Relay;
use crate::bench::rounds::compare;
use crate::bench::run::Bench;
use crate::bench::stats::rate;

/// The most bytes per read, equal to our client's.
const READ: usize = 256 * 1024;

pub(super) fn run(bench: &Bench) -> Result<Vec<Measurement>> {
    let bytes = bench.amount(1 << 30, 1 << 27);
    let command = flood_writer::command(Pattern::Raw, bytes)?;
    let argv: Vec<&str> = command.iter().map(String::as_str).collect();
    let relay = Relay::start(&argv)?;
    let medians = compare(
        bench,
        bench.rounds,
        Some(&mut || Ok([bare(&relay, bytes)?])),
        ConnectedServer::open,
        |link| {
            let start = Start {
                argv: &argv,
                ..Start::default()
            };
            let check = StreamCheck::new(Pattern::Raw);
            Ok([served(&mut link.client, start, check, bytes)?])
        },
    )?;
    Ok(vec![Measurement {
        name: "flood of output, JSON frames".to_owned(),
        unit: Unit::BytesPerSecond,
        bare: medians.bare.map(|[rate]| rate),
        outpost: medians.outpost[0],
        peer: medians.peer.map(|[rate]| rate),
        bounds: vec![Bound::RatioAtLeast(0.35)],
    }])
}

fn bare(relay: &Relay, bytes: usize) -> Result<f64> {
    let mut check = StreamCheck::new(Pattern::Raw);
    let mut buffer = vec![0; READ];
    let begun = Instant::now();
    let mut socket = relay.connect()?;
    loop {
        match socket.read(&mut buffer)? {
            0 => break,
            read => check.add(&buffer[..read])?,
        }
    }
    let time = begun.elapsed();
    let (found, expected) = (check.bytes, check.expect(bytes));
    ensure!(found == expected, "{found} bytes of {expected} arrived");
    Ok(rate(found, time))
}

/// Starts a program that writes `bytes` and reads until it has closed.
pub(super) fn served(
    client: &mut Client,
    start: Start<'_>,
    mut check: StreamCheck,
    bytes: usize,
) -> Result<f64> {
    let mut decoder = Base64Decoder::default();
    let begun = Instant::now();
    let (_, name) = client.start(start)?;
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
                check.add(decoder.decode(chunk)?)?;
            }
            Message::Exited { process, code } if process == name => {
                ensure!(code == 0, "the flood ended with {code}");
            }
            Message::Closed { process } if process == name => break,
            _ => {}
        }
    }
    let time = begun.elapsed();
    let (found, expected) = (check.bytes, check.expect(bytes));
    ensure!(found == expected, "{found} bytes of {expected} arrived");
    Ok(rate(found, time))
}
