//! A lot of output from a pipe, every byte of it counted where it arrives.

use std::io::Read as _;
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::bench::bound::Bound;
use crate::bench::client::{Client, Decoder, Start};
use crate::bench::contest::compare;
use crate::bench::line::{Line, Unit};
use crate::bench::link::Link;
use crate::bench::message::Message;
use crate::bench::pattern::{Pattern, Tally};
use crate::bench::pour;
use crate::bench::relay::Relay;
use crate::bench::run::Bench;
use crate::bench::stats::rate;

/// How much the bare reader takes from its socket at once, which is as much as our client does.
const READ: usize = 256 * 1024;

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let bytes = bench.amount(1 << 30, 1 << 27);
    let command = pour::command(Pattern::Raw, bytes)?;
    let argv: Vec<&str> = command.iter().map(String::as_str).collect();
    let relay = Relay::start(&argv)?;
    let medians = compare(
        bench,
        bench.rounds,
        Some(&mut || Ok([bare(&relay, bytes)?])),
        Link::open,
        |link| {
            let start = Start {
                argv: &argv,
                ..Start::default()
            };
            let tally = Tally::new(Pattern::Raw);
            Ok([served(&mut link.client, start, tally, bytes)?])
        },
    )?;
    Ok(vec![Line {
        name: "flood of output, JSON frames".to_owned(),
        unit: Unit::BytesPerSecond,
        bare: medians.bare.map(|[rate]| rate),
        outpost: medians.outpost[0],
        peer: medians.peer.map(|[rate]| rate),
        bounds: vec![Bound::RatioAtLeast(0.35)],
    }])
}

fn bare(relay: &Relay, bytes: usize) -> Result<f64> {
    let mut tally = Tally::new(Pattern::Raw);
    let mut buffer = vec![0; READ];
    let begun = Instant::now();
    let mut socket = relay.connect()?;
    loop {
        match socket.read(&mut buffer)? {
            0 => break,
            read => tally.add(&buffer[..read])?,
        }
    }
    let time = begun.elapsed();
    let (found, expected) = (tally.bytes, tally.expect(bytes));
    ensure!(found == expected, "{found} bytes of {expected} arrived");
    Ok(rate(found, time))
}

/// Starts something that pours `bytes` and takes what arrives until it has closed.
pub(super) fn served(
    client: &mut Client,
    start: Start<'_>,
    mut tally: Tally,
    bytes: usize,
) -> Result<f64> {
    let mut decoder = Decoder::default();
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
                tally.add(decoder.decode(chunk)?)?;
            }
            Message::Exited { process, code } if process == name => {
                ensure!(code == 0, "the flood ended with {code}");
            }
            Message::Closed { process } if process == name => break,
            _ => {}
        }
    }
    let time = begun.elapsed();
    let (found, expected) = (tally.bytes, tally.expect(bytes));
    ensure!(found == expected, "{found} bytes of {expected} arrived");
    Ok(rate(found, time))
}
