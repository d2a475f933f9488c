//! A request behind a long poll.

use std::time::Instant;

use anyhow::{Result, bail};

use super::one_shot::COMMAND;
use crate::bench::bound::Bound;
use crate::bench::client::Start;
use crate::bench::connected_server::ConnectedServer;
use crate::bench::measurement::{Measurement, Unit};
use crate::bench::message::Message;
use crate::bench::rounds::compare;
use crate::bench::run::Bench;
use crate::bench::server::Candidate;
use crate::bench::stats::millis;

pub(super) fn run(bench: &Bench) -> Result<Vec<Measurement>> {
    let medians = compare(bench, bench.rounds, None, LongPoll::new, |waiting| {
        Ok([waiting.worst()?])
    })?;
    Ok(vec![Measurement {
        name: "request behind a long poll, worst of 3 kinds".to_owned(),
        unit: Unit::Millis,
        bare: None,
        outpost: medians.outpost[0],
        peer: medians.peer.map(|[time]| time),
        bounds: vec![Bound::AtMost(2.0)],
    }])
}

/// The request behind the long poll.
#[derive(Clone, Copy)]
enum Probe {
    /// A read of the same process.
    Read,
    /// A write to the same process.
    Write,
    /// A start of another process.
    Start,
}

struct LongPoll {
    link: ConnectedServer,
    /// A process that writes nothing.
    silent: String,
}

impl LongPoll {
    fn new(candidate: Candidate<'_>) -> Result<Self> {
        let mut link = ConnectedServer::open(candidate)?;
        let (id, silent) = link.client.start(Start {
            argv: &["/usr/bin/sleep", "300"],
            pipe_stdin: true,
            ..Start::default()
        })?;
        link.client.wait_response(id)?;
        Ok(Self { link, silent })
    }

    /// Returns the longest delay. Each kind has its own long poll, because a sequential server is
    /// fast again after the first.
    fn worst(&mut self) -> Result<f64> {
        let mut worst: f64 = 0.0;
        for probe in [Probe::Read, Probe::Write, Probe::Start] {
            worst = worst.max(self.behind(probe)?);
        }
        Ok(worst)
    }

    fn behind(&mut self, probe: Probe) -> Result<f64> {
        let poll = self.read(2000);
        self.link.client.flush()?;
        let id = match probe {
            Probe::Read => self.read(0),
            Probe::Write => self.link.client.type_key(&self.silent),
            Probe::Start => {
                let argv = &[COMMAND];
                self.link
                    .client
                    .start(Start {
                        argv,
                        ..Start::default()
                    })?
                    .0
            }
        };
        let begun = Instant::now();
        let mut polled = false;
        loop {
            match self.link.client.next()? {
                Message::Response { id: of } if of == id => break,
                Message::Response { id: of } => polled |= of == poll,
                _ => {}
            }
        }
        let time = millis(begun.elapsed());
        // An early response to the long poll would invalidate the measurement.
        if polled && time < 1000.0 {
            bail!("the long poll was answered after {time:.1} ms");
        }
        Ok(time)
    }

    fn read(&mut self, wait_ms: u32) -> u64 {
        let silent = &self.silent;
        let params = format!(r#"{{"processId":"{silent}","afterSeq":null,"waitMs":{wait_ms}}}"#);
        self.link.client.request("process/read", &params)
    }
}
