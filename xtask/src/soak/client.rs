//! The work of one client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use outpost_testkit::reconnecting::{Delivery, ReconnectingClient};
use outpost_testkit::{FaultyLink, SequenceCheck, Start, TestTag, deadline, programs, sh};
use parking_lot::Mutex;
use serde_json::json;

use super::counters::SharedCounters;

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
    counters: SharedCounters,
) {
    while Instant::now() < until {
        let delivery = if rng.bool() {
            Delivery::Push
        } else {
            Delivery::Acked
        };
        let client = ReconnectingClient::connect(link.url(), delivery, &tag).await;
        for number in 1..=rng.u64(2..=12) {
            counters.lock().processes += 1;
            let task = Task {
                client: &client,
                counters: &counters,
                id: format!("p{number}"),
            };
            match rng.u8(0..6) {
                0 | 1 => task.count(delivery, &mut rng).await,
                2 | 3 => task.type_lines(rng.u64(1..=200)).await,
                4 => task.misbehave(&mut rng).await,
                _ => task.flood_and_terminate(&mut rng).await,
            }
        }
        // Half of the sessions are closed, the others expire.
        if rng.bool() {
            let _ = client.call("session/close", json!({})).await;
        }
        counters.lock().sessions += 1;
    }
}

/// Starts a process that prints numbered lines, and verifies that they arrive once and in order.
pub(super) async fn follow_lines(
    client: &ReconnectingClient,
    start: Start,
) -> Arc<Mutex<SequenceCheck>> {
    let lines = Arc::new(Mutex::new(SequenceCheck::default()));
    let sink = Arc::clone(&lines);
    client
        .follow(start, move |bytes| sink.lock().take(bytes))
        .await;
    lines
}

/// One process.
struct Task<'a> {
    client: &'a ReconnectingClient,
    counters: &'a SharedCounters,
    id: String,
}

impl Task<'_> {
    /// Verifies that output arrives once and in order.
    async fn count(&self, delivery: Delivery, rng: &mut Rng) {
        // Pushed output beyond the retention may have gaps.
        let most = match delivery {
            Delivery::Acked => 3_000_000,
            Delivery::Push => 100_000,
        };
        let total = rng.u64(1..=most);
        let start = sh(&self.id, &format!("exec seq 1 {total}"));
        let lines = follow_lines(self.client, start).await;
        let outcome = self.client.closed(&self.id).await;
        assert_eq!((outcome.code, outcome.gaps), (0, 0));
        assert_eq!(lines.lock().count(), total);
        self.counters.lock().bytes += total * 7;
    }

    /// Verifies that input arrives once and in order.
    async fn type_lines(&self, count: u64) {
        let start = Start::new(&self.id, &["cat"]).stdin();
        let lines = follow_lines(self.client, start).await;
        for number in 1..=count {
            self.client.write(&self.id, format!("{number}\n")).await;
        }
        deadline::poll_until("the echo of the input", || {
            (lines.lock().count() == count).then_some(())
        })
        .await;
        self.terminate().await;
        assert_eq!(self.client.closed(&self.id).await.gaps, 0);
        self.counters.lock().lines_typed += count;
    }

    /// Starts a misbehaving program; half are terminated, the others end with the session.
    async fn misbehave(&self, rng: &mut Rng) {
        let program = MISBEHAVING[rng.usize(..MISBEHAVING.len())];
        self.client.follow(sh(&self.id, program), |_| {}).await;
        self.counters.lock().misbehaved += 1;
        if rng.bool() {
            let grace = rng.u64(0..=200);
            let params = json!({"processId": self.id, "tree": true, "graceMs": grace});
            let _ = self.client.call("process/terminate", params).await;
        }
    }

    /// Terminates a flood in the middle.
    async fn flood_and_terminate(&self, rng: &mut Rng) {
        let received = Arc::new(Mutex::new(0));
        let sink = Arc::clone(&received);
        let count = move |bytes: &[u8]| *sink.lock() += bytes.len() as u64;
        let flood = sh(&self.id, programs::FLOODS);
        self.client.follow(flood, count).await;
        let enough = rng.u64(1..=20_000_000);
        let deadline = Instant::now() + Duration::from_secs(2);
        while *received.lock() < enough && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.terminate().await;
        self.client.closed(&self.id).await;
        self.counters.lock().bytes += *received.lock();
    }

    async fn terminate(&self) {
        let params = json!({"processId": self.id});
        let call = || self.client.call("process/terminate", params.clone());
        // terminate is idempotent: repeat it until there is a response.
        while call().await.is_err() {}
    }
}
