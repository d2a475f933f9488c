//! One client's work.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use outpost_testkit::steadfast::{Delivery, Steadfast};
use outpost_testkit::{CountedLines, Link, Mark, Start, programs, sh};
use serde_json::json;

use super::dice::Dice;
use super::figures::{Figures, add};

const MISBEHAVING: [&str; 5] = [
    programs::IGNORES_TERM,
    programs::HOLDS_THE_PIPE,
    programs::DAEMON,
    programs::LEAVES_A_DAEMON,
    programs::LEAVES_ITS_GROUP,
];

/// Opens sessions one after the other and works in them, until the time is over.
pub(super) async fn work(
    link: Arc<Link>,
    mut dice: Dice,
    mark: Mark,
    until: Instant,
    figures: Arc<Figures>,
) {
    while Instant::now() < until {
        let delivery = dice.one_of(&[Delivery::Push, Delivery::Acked]);
        let client = Steadfast::connect(link.url(), delivery, &mark).await;
        let mut worker = Worker {
            client,
            delivery,
            figures: &figures,
            next: 0,
        };
        for _ in 0..dice.between(2, 12) {
            worker.one_thing(&mut dice).await;
        }
        // Half of the sessions are closed, the others are left to expire.
        if dice.between(0, 1) == 0 {
            let _ = worker.client.call("session/close", json!({})).await;
        }
        add(&figures.sessions, 1);
    }
}

struct Worker<'a> {
    client: Steadfast,
    delivery: Delivery,
    figures: &'a Figures,
    next: u64,
}

impl Worker<'_> {
    async fn one_thing(&mut self, dice: &mut Dice) {
        add(&self.figures.processes, 1);
        self.next += 1;
        let id = format!("p{}", self.next);
        match dice.between(0, 5) {
            0 | 1 => self.count(&id, dice).await,
            2 | 3 => self.type_lines(&id, dice.between(1, 200)).await,
            4 => self.misbehave(&id, dice).await,
            _ => self.flood_and_end(&id, dice).await,
        }
    }

    /// Everything that a process writes comes once and in order.
    async fn count(&self, id: &str, dice: &mut Dice) {
        // Pushed output must fit what is retained, or it may rightly have gaps.
        let most = match self.delivery {
            Delivery::Acked => 3_000_000,
            Delivery::Push => 100_000,
        };
        let total = dice.between(1, most);
        let lines = Arc::new(Mutex::new(CountedLines::default()));
        let taker = Arc::clone(&lines);
        let bytes = move |bytes: &[u8]| lock(&taker).take(bytes);
        self.client
            .follow(sh(id, &format!("exec seq 1 {total}")), bytes)
            .await;
        let outcome = self.client.closed(id).await;
        assert_eq!((outcome.code, outcome.gaps), (0, 0));
        assert_eq!(lock(&lines).count(), total);
        add(&self.figures.bytes, total * 7);
    }

    /// Everything that is typed arrives once and in order.
    async fn type_lines(&self, id: &str, count: u64) {
        let lines = Arc::new(Mutex::new(CountedLines::default()));
        let taker = Arc::clone(&lines);
        let bytes = move |bytes: &[u8]| lock(&taker).take(bytes);
        self.client
            .follow(Start::new(id, &["cat"]).stdin(), bytes)
            .await;
        for number in 1..=count {
            self.client.write(id, format!("{number}\n")).await;
        }
        outpost_testkit::patience::seen("all that was typed", || {
            (lock(&lines).count() == count).then_some(())
        })
        .await;
        self.end(id).await;
        assert_eq!(self.client.closed(id).await.gaps, 0);
        add(&self.figures.lines_typed, count);
    }

    /// What misbehaves is ended, or left for the end of the session.
    async fn misbehave(&self, id: &str, dice: &mut Dice) {
        self.client
            .follow(sh(id, dice.one_of(&MISBEHAVING)), |_: &[u8]| {})
            .await;
        add(&self.figures.misbehaved, 1);
        if dice.between(0, 1) == 0 {
            let params = json!({"processId": id, "tree": true, "graceMs": dice.between(0, 200)});
            let _ = self.client.call("process/terminate", params).await;
        }
    }

    /// A flood is ended in its middle.
    async fn flood_and_end(&self, id: &str, dice: &mut Dice) {
        let taken = Arc::new(Mutex::new(0_u64));
        let taker = Arc::clone(&taken);
        let count = move |bytes: &[u8]| *lock(&taker) += bytes.len() as u64;
        self.client.follow(sh(id, programs::FLOODS), count).await;
        let enough = dice.between(1, 20_000_000);
        let patience = Instant::now() + Duration::from_secs(2);
        while *lock(&taken) < enough && Instant::now() < patience {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.end(id).await;
        self.client.closed(id).await;
        add(&self.figures.bytes, *lock(&taken));
    }

    async fn end(&self, id: &str) {
        // A lost answer leaves open whether it was heard; saying it again does no harm.
        while self
            .client
            .call("process/terminate", json!({"processId": id}))
            .await
            .is_err()
        {}
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
