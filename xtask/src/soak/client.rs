//! The work of one client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outpost_testkit::reconnecting::{Delivery, ReconnectingClient};
use outpost_testkit::{CountedLines, FaultyLink, Start, TestTag, programs, sh};
use parking_lot::Mutex;
use serde_json::json;

use super::counters::{Counters, add};
use super::rng::Rng;

const MISBEHAVING: [&str; 5] = [
    programs::IGNORES_TERM,
    programs::HOLDS_THE_PIPE,
    programs::DAEMON,
    programs::LEAVES_A_DAEMON,
    programs::LEAVES_ITS_GROUP,
];

/// Opens sessions one after the other and runs random tasks in them, until `until`.
pub(super) async fn work(
    link: Arc<FaultyLink>,
    mut rng: Rng,
    tag: TestTag,
    until: Instant,
    counters: Arc<Counters>,
) {
    while Instant::now() < until {
        let delivery = rng.one_of(&[Delivery::Push, Delivery::Acked]);
        let client = ReconnectingClient::connect(link.url(), delivery, &tag).await;
        let mut worker = Worker {
            client,
            delivery,
            counters: &counters,
            next: 0,
        };
        for _ in 0..rng.between(2, 12) {
            worker.random_task(&mut rng).await;
        }
        // Half of the sessions are closed, the others expire.
        if rng.between(0, 1) == 0 {
            let _ = worker.client.call("session/close", json!({})).await;
        }
        add(&counters.sessions, 1);
    }
}

struct Worker<'a> {
    client: ReconnectingClient,
    delivery: Delivery,
    counters: &'a Counters,
    next: u64,
}

impl Worker<'_> {
    async fn random_task(&mut self, rng: &mut Rng) {
        add(&self.counters.processes, 1);
        self.next += 1;
        let id = format!("p{}", self.next);
        match rng.between(0, 5) {
            0 | 1 => self.count(&id, rng).await,
            2 | 3 => self.type_lines(&id, rng.between(1, 200)).await,
            4 => self.misbehave(&id, rng).await,
            _ => self.flood_and_terminate(&id, rng).await,
        }
    }

    /// Verifies that output arrives once and in order.
    async fn count(&self, id: &str, rng: &mut Rng) {
        // Pushed output beyond the retention may have gaps.
        let most = match self.delivery {
            Delivery::Acked => 3_000_000,
            Delivery::Push => 100_000,
        };
        let total = rng.between(1, most);
        let lines = Arc::new(Mutex::new(CountedLines::default()));
        let sink = Arc::clone(&lines);
        let bytes = move |bytes: &[u8]| sink.lock().take(bytes);
        self.client
            .follow(sh(id, &format!("exec seq 1 {total}")), bytes)
            .await;
        let outcome = self.client.closed(id).await;
        assert_eq!((outcome.code, outcome.gaps), (0, 0));
        assert_eq!(lines.lock().count(), total);
        add(&self.counters.bytes, total * 7);
    }

    /// Verifies that input arrives once and in order.
    async fn type_lines(&self, id: &str, count: u64) {
        let lines = Arc::new(Mutex::new(CountedLines::default()));
        let sink = Arc::clone(&lines);
        let bytes = move |bytes: &[u8]| sink.lock().take(bytes);
        self.client
            .follow(Start::new(id, &["cat"]).stdin(), bytes)
            .await;
        for number in 1..=count {
            self.client.write(id, format!("{number}\n")).await;
        }
        outpost_testkit::deadline::poll_until("the echo of the input", || {
            (lines.lock().count() == count).then_some(())
        })
        .await;
        self.terminate(id).await;
        assert_eq!(self.client.closed(id).await.gaps, 0);
        add(&self.counters.lines_typed, count);
    }

    /// Starts a misbehaving program; half are terminated, the others end with the session.
    async fn misbehave(&self, id: &str, rng: &mut Rng) {
        self.client
            .follow(sh(id, rng.one_of(&MISBEHAVING)), |_: &[u8]| {})
            .await;
        add(&self.counters.misbehaved, 1);
        if rng.between(0, 1) == 0 {
            let params = json!({"processId": id, "tree": true, "graceMs": rng.between(0, 200)});
            let _ = self.client.call("process/terminate", params).await;
        }
    }

    /// Terminates a flood in the middle.
    async fn flood_and_terminate(&self, id: &str, rng: &mut Rng) {
        let received = Arc::new(Mutex::new(0_u64));
        let sink = Arc::clone(&received);
        let count = move |bytes: &[u8]| *sink.lock() += bytes.len() as u64;
        self.client.follow(sh(id, programs::FLOODS), count).await;
        let enough = rng.between(1, 20_000_000);
        let deadline = Instant::now() + Duration::from_secs(2);
        while *received.lock() < enough && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.terminate(id).await;
        self.client.closed(id).await;
        add(&self.counters.bytes, *received.lock());
    }

    async fn terminate(&self, id: &str) {
        // terminate is idempotent: repeat it until there is a response.
        while self
            .client
            .call("process/terminate", json!({"processId": id}))
            .await
            .is_err()
        {}
    }
}
