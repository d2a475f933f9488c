//! Push and acked delivery across disconnects.

use std::time::Duration;

use outpost_engine::{Delivery, Event, Limits, Seq};

use crate::owner::{Cursor, engine, open, resume, shell, start, until};

const LONG: Duration = Duration::from_secs(600);
const NUMBERS: usize = 500_000;

/// A script that prints a few megabytes of numbers.
fn counting() -> String {
    format!("seq 1 {NUMBERS}")
}

/// Reassembles output and verifies it.
#[derive(Default)]
struct Numbers {
    text: Vec<u8>,
    next: usize,
    closed: bool,
}

impl Numbers {
    fn take(&mut self, event: &Event) {
        match event {
            Event::Output(chunk) => self.text.extend_from_slice(&chunk.bytes),
            Event::Exited { exit, .. } => assert_eq!(exit.code, 0),
            Event::Closed { .. } => self.closed = true,
        }
        let whole = self.text.iter().rposition(|byte| *byte == b'\n');
        let rest = self.text.split_off(whole.map_or(0, |end| end + 1));
        for line in self.text.split_inclusive(|byte| *byte == b'\n') {
            self.next += 1;
            let expected = format!("{}\n", self.next);
            assert_eq!(line, expected.as_bytes(), "no byte lost, none doubled");
        }
        self.text = rest;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn acked_output_survives_repeated_disconnects() {
    let engine = engine(Limits::default());
    let (session, mut epoch) = open(&engine, LONG, Delivery::Acked);
    let process = start(&engine, &session, shell("p", &counting()))
        .await
        .unwrap();
    let mut numbers = Numbers::default();
    let mut acknowledged = Seq::START;
    let mut cuts = 0;
    while !numbers.closed {
        let mut cursor = Cursor::attach(&session, epoch, &process, Some(acknowledged));
        for _ in 0..4 {
            for event in cursor.next(64 * 1024).await {
                assert_eq!(event.seq(), acknowledged.next(), "in order, without a hole");
                numbers.take(&event);
                acknowledged = event.seq();
            }
            if numbers.closed {
                break;
            }
        }
        // The following events are sent and lost with the connection.
        if !numbers.closed {
            cursor.next(64 * 1024).await;
        }
        session.acknowledge("p", acknowledged);
        engine.detach(&session, epoch);
        epoch = resume(&engine, &session).unwrap();
        cuts += 1;
    }
    assert_eq!(numbers.next, NUMBERS);
    assert!(cuts > 5, "{cuts}");
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn detached_acked_process_waits_for_its_client() {
    let limits = Limits {
        window_bytes: 64 * 1024,
        ..Limits::default()
    };
    let engine = engine(limits);
    let (session, epoch) = open(&engine, LONG, Delivery::Acked);
    let process = start(&engine, &session, shell("p", &counting()))
        .await
        .unwrap();
    engine.detach(&session, epoch);
    until("the window is full", || {
        process.summary().bytes_out >= 64 * 1024
    })
    .await;
    let written = process.summary().bytes_out;
    assert!(
        written < 400 * 1024,
        "held back a little after the window, not at {written}"
    );
    let epoch = resume(&engine, &session).unwrap();
    let mut cursor = Cursor::attach(&session, epoch, &process, None);
    let mut numbers = Numbers::default();
    while !numbers.closed {
        for event in cursor.next(64 * 1024).await {
            numbers.take(&event);
        }
        session.acknowledge("p", cursor.seen);
    }
    assert_eq!(numbers.next, NUMBERS);
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn detached_push_process_continues_and_reports_gap() {
    let engine = engine(Limits::default());
    let (session, epoch) = open(&engine, LONG, Delivery::Push);
    let process = start(&engine, &session, shell("p", &counting()))
        .await
        .unwrap();
    engine.detach(&session, epoch);
    until("it has run to its end", || !process.is_running()).await;
    let epoch = resume(&engine, &session).unwrap();
    let mut cursor = Cursor::attach(&session, epoch, &process, None);
    let first = cursor.next(64 * 1024).await.first().map(Event::seq);
    assert!(first > Some(Seq(1)), "the oldest went: {first:?}");
    let retained: usize = process
        .page(Seq::START, None)
        .chunks
        .iter()
        .map(|c| c.bytes.len())
        .sum();
    assert!((900_000..=1_048_576).contains(&retained), "{retained}");
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn acked_process_is_retained_until_close_is_acknowledged() {
    let limits = Limits {
        closed_retention: Duration::ZERO,
        ..Limits::default()
    };
    let engine = engine(limits);
    let (session, epoch) = open(&engine, LONG, Delivery::Acked);
    let process = start(&engine, &session, shell("p", "echo x"))
        .await
        .unwrap();
    let mut cursor = Cursor::attach(&session, epoch, &process, None);
    let mut events = Vec::new();
    while !matches!(events.last(), Some(Event::Closed { .. })) {
        events.extend(cursor.next(1 << 20).await);
    }
    session.acknowledge("p", Seq(2));
    assert!(
        session.find("p").is_ok(),
        "the close has not been acknowledged"
    );
    session.acknowledge("p", cursor.seen);
    until("it is forgotten", || session.find("p").is_err()).await;
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn resuming_with_later_cursor_unblocks_child() {
    let limits = Limits {
        window_bytes: 64 * 1024,
        ..Limits::default()
    };
    let engine = engine(limits);
    let (session, epoch) = open(&engine, LONG, Delivery::Acked);
    let process = start(&engine, &session, shell("p", "exec yes"))
        .await
        .unwrap();
    let mut cursor = Cursor::attach(&session, epoch, &process, None);
    until("it is held back", || {
        let written = process.summary().bytes_out;
        written >= 64 * 1024
    })
    .await;
    while process.summary().next_seq > cursor.seen.next() {
        cursor.next(1 << 20).await;
    }
    // All output arrived, but no acknowledgement.
    engine.detach(&session, epoch);
    let epoch = resume(&engine, &session).unwrap();
    let before = process.summary().bytes_out;
    let _cursor = Cursor::attach(&session, epoch, &process, Some(cursor.seen));
    let started = std::time::Instant::now();
    until("it goes on", || process.summary().bytes_out > before).await;
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
    session.terminate("p", None, false);
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn resuming_after_close_acknowledges_it() {
    let limits = Limits {
        closed_retention: Duration::ZERO,
        ..Limits::default()
    };
    let engine = engine(limits);
    let (session, epoch) = open(&engine, LONG, Delivery::Acked);
    let process = start(&engine, &session, shell("p", "echo x"))
        .await
        .unwrap();
    until("it is closed", || process.page(Seq::START, None).closed).await;
    engine.detach(&session, epoch);
    let epoch = resume(&engine, &session).unwrap();
    let last = process.summary().next_seq.previous();
    let _cursor = Cursor::attach(&session, epoch, &process, Some(last));
    until("it is forgotten", || session.find("p").is_err()).await;
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}
