//! A request behind one that waits for news of a process that has none.

use std::time::Instant;

use anyhow::{Result, bail};

use super::one_shot::COMMAND;
use crate::bench::bound::Bound;
use crate::bench::client::Start;
use crate::bench::contest::compare;
use crate::bench::line::{Line, Unit};
use crate::bench::link::Link;
use crate::bench::message::Message;
use crate::bench::run::Bench;
use crate::bench::server::Candidate;
use crate::bench::stats::millis;

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let medians = compare(bench, bench.rounds, None, Waiting::new, |waiting| {
        Ok([waiting.worst()?])
    })?;
    Ok(vec![Line {
        name: "behind a long poll, worst of 3 kinds".to_owned(),
        unit: Unit::Millis,
        bare: None,
        outpost: medians.outpost[0],
        peer: medians.peer.map(|[time]| time),
        bounds: vec![Bound::AtMost(2.0)],
    }])
}

/// What is asked behind the long poll.
#[derive(Clone, Copy)]
enum Probe {
    /// Of the same process: what has it written?
    Read,
    /// To the same process.
    Write,
    /// Of another.
    Start,
}

struct Waiting {
    link: Link,
    /// Says nothing, and takes what is written to it.
    silent: String,
}

impl Waiting {
    fn new(candidate: Candidate<'_>) -> Result<Self> {
        let mut link = Link::open(candidate)?;
        let (id, silent) = link.client.start(Start {
            argv: &["/usr/bin/sleep", "300"],
            pipe_stdin: true,
            ..Start::default()
        })?;
        link.client.answered(id)?;
        Ok(Self { link, silent })
    }

    /// The longest that a request had to wait. Each kind has a long poll of its own before it: who
    /// answers one at a time is quick again once the first is over.
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
            Probe::Write => self.link.client.press(&self.silent),
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
                Message::Answer { id: of } if of == id => break,
                Message::Answer { id: of } => polled |= of == poll,
                _ => {}
            }
        }
        let time = millis(begun.elapsed());
        // An answer before its time would mean that there was nothing to wait behind.
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
