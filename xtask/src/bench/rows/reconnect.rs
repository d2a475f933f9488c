//! Reconnect, resume the session and read missed output.

use std::time::Instant;

use anyhow::Result;

use crate::bench::bound::Bound;
use crate::bench::client::{Client, Start};
use crate::bench::connected_server::ConnectedServer;
use crate::bench::measurement::{Measurement, Unit};
use crate::bench::rounds::compare;
use crate::bench::run::Bench;
use crate::bench::server::Candidate;
use crate::bench::stats::{median, millis};

pub(super) fn run(bench: &Bench) -> Result<Vec<Measurement>> {
    let times = bench.amount(200, 30);
    let medians = compare(bench, bench.rounds, None, Lost::new, |lost| {
        Ok([lost.p50(times)?])
    })?;
    Ok(vec![Measurement {
        name: "reconnect and resume, p50".to_owned(),
        unit: Unit::Millis,
        bare: None,
        outpost: medians.outpost[0],
        peer: medians.peer.map(|[time]| time),
        bounds: vec![Bound::AtMost(2.0)],
    }])
}

struct Lost {
    link: ConnectedServer,
    /// The process that echoes its input.
    echo: String,
}

impl Lost {
    fn new(candidate: Candidate<'_>) -> Result<Self> {
        let mut link = ConnectedServer::open(candidate)?;
        let (id, echo) = link.client.start(Start {
            argv: &["/usr/bin/cat"],
            pipe_stdin: true,
            ..Start::default()
        })?;
        link.client.wait_response(id)?;
        Ok(Self { link, echo })
    }

    fn p50(&mut self, times: usize) -> Result<f64> {
        let mut all = Vec::with_capacity(times);
        for _ in 0..times {
            all.push(self.once()?);
        }
        Ok(median(&all))
    }

    /// Measures from the cut to the response of the read on the new connection.
    fn once(&mut self) -> Result<f64> {
        let id = self.link.client.type_key(&self.echo);
        self.link.client.wait_response(id)?;
        let session = self.link.client.session.clone();
        let begun = Instant::now();
        self.link.client.disconnect()?;
        self.link.client = Client::resume(self.link.server.url(), &session)?;
        let params = format!(
            r#"{{"processId":"{}","afterSeq":null,"waitMs":0}}"#,
            self.echo
        );
        let read = self.link.client.request("process/read", &params);
        self.link.client.wait_response(read)?;
        Ok(millis(begun.elapsed()))
    }
}
