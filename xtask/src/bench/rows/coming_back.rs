//! A connection is lost; another one takes up its session and reads what it has missed.

use std::time::Instant;

use anyhow::Result;

use crate::bench::bound::Bound;
use crate::bench::client::{Client, Start};
use crate::bench::contest::compare;
use crate::bench::line::{Line, Unit};
use crate::bench::link::Link;
use crate::bench::run::Bench;
use crate::bench::server::Candidate;
use crate::bench::stats::{median, millis};

pub(super) fn run(bench: &Bench) -> Result<Vec<Line>> {
    let times = bench.amount(200, 30);
    let medians = compare(bench, bench.rounds, None, Lost::new, |lost| {
        Ok([lost.p50(times)?])
    })?;
    Ok(vec![Line {
        name: "coming back, p50".to_owned(),
        unit: Unit::Millis,
        bare: None,
        outpost: medians.outpost[0],
        peer: medians.peer.map(|[time]| time),
        bounds: vec![Bound::AtMost(2.0)],
    }])
}

struct Lost {
    link: Link,
    /// Says back what it is told.
    echo: String,
}

impl Lost {
    fn new(candidate: Candidate<'_>) -> Result<Self> {
        let mut link = Link::open(candidate)?;
        let (id, echo) = link.client.start(Start {
            argv: &["/usr/bin/cat"],
            pipe_stdin: true,
            ..Start::default()
        })?;
        link.client.answered(id)?;
        Ok(Self { link, echo })
    }

    fn p50(&mut self, times: usize) -> Result<f64> {
        let mut all = Vec::with_capacity(times);
        for _ in 0..times {
            all.push(self.once()?);
        }
        Ok(median(&all))
    }

    /// From the moment the line is cut until what was written before it has been read over another.
    fn once(&mut self) -> Result<f64> {
        let id = self.link.client.press(&self.echo);
        self.link.client.answered(id)?;
        let session = self.link.client.session.clone();
        let begun = Instant::now();
        self.link.client.hang_up()?;
        self.link.client = Client::resume(self.link.server.url(), &session)?;
        let params = format!(
            r#"{{"processId":"{}","afterSeq":null,"waitMs":0}}"#,
            self.echo
        );
        let read = self.link.client.request("process/read", &params);
        self.link.client.answered(read)?;
        Ok(millis(begun.elapsed()))
    }
}
