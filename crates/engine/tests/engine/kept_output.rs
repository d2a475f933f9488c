//! The memory of the output that all processes keep.

use std::time::Duration;

use outpost_engine::{Delivery, Engine, Event, Limits, Peer, Process, Seq, Session, StartError};

use crate::owner::{Cursor, engine, open, shell, start, try_open, until};

const MIB: usize = 1024 * 1024;
const LONG: Duration = Duration::from_secs(600);

fn limited() -> Engine {
    engine(Limits {
        kept_output_bytes: 4 * MIB,
        ..Limits::default()
    })
}

fn kept(process: &Process) -> usize {
    process.page_bytes(Seq::START, None)
}

/// Reads a process to its end, and acknowledges everything.
async fn read_to_end(session: &Session, cursor: &mut Cursor, id: &str) -> usize {
    let mut bytes = 0;
    loop {
        for event in cursor.next(64 * 1024).await {
            session.acknowledge(id, event.seq());
            match event {
                Event::Output(chunk) => bytes += chunk.bytes.len(),
                Event::Exited { .. } => {}
                Event::Closed { .. } => return bytes,
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_floods_share_the_budget_and_another_process_goes_on() {
    let engine = limited();
    let (session, epoch) = open(&engine, LONG, Delivery::Acked);
    let mut floods = Vec::new();
    for n in 0..32 {
        let flood = shell(&format!("flood{n}"), "exec cat /dev/zero");
        floods.push(start(&engine, &session, flood).await.unwrap());
    }
    until("all have written", || {
        floods.iter().all(|flood| flood.summary().bytes_out > 0)
    })
    .await;
    let script = "head -c 3000000 /dev/zero";
    let process = start(&engine, &session, shell("p", script)).await.unwrap();
    let mut cursor = Cursor::attach(&session, epoch, &process, None);
    assert_eq!(read_to_end(&session, &mut cursor, "p").await, 3_000_000);
    let sum: usize = floods.iter().map(kept).sum();
    // The output is counted after it was read.
    assert!(sum < 6 * MIB, "{sum}");
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_flood_continues_when_memory_is_free() {
    let engine = limited();
    let (session, epoch) = open(&engine, LONG, Delivery::Acked);
    let script = "head -c 8000000 /dev/zero";
    let mut floods = Vec::new();
    for n in 0..8 {
        let id = format!("flood{n}");
        floods.push(start(&engine, &session, shell(&id, script)).await.unwrap());
    }
    for process in &floods {
        let mut cursor = Cursor::attach(&session, epoch, process, None);
        let read = read_to_end(&session, &mut cursor, process.id()).await;
        assert_eq!(read, 8_000_000);
    }
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn history_of_quiet_processes_gives_way() {
    let engine = limited();
    let (session, epoch) = open(&engine, LONG, Delivery::Push);
    engine.detach(&session, epoch);
    let mut quiet = Vec::new();
    for n in 0..8 {
        let script = format!("head -c 1000000 /dev/zero; echo end {n}; exec sleep 1000");
        let process = start(&engine, &session, shell(&format!("p{n}"), &script));
        let process = process.await.unwrap();
        until("it has written", || process.summary().bytes_out > 1_000_000).await;
        quiet.push(process);
    }
    until("history is cut", || {
        quiet.iter().map(kept).sum::<usize>() <= 3 * MIB
    })
    .await;
    for (n, process) in quiet.iter().enumerate() {
        let last = process.page(Seq::START, None).chunks.pop();
        let last = last.map(|chunk| chunk.bytes).unwrap_or_default();
        assert!(
            last.ends_with(format!("end {n}\n").as_bytes()),
            "the tail stays"
        );
    }
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

/// The floods of one peer use its share; the history of another one stays.
#[tokio::test(flavor = "multi_thread")]
async fn floods_of_one_peer_do_not_evict_the_output_of_another() {
    let engine = limited();
    let (quiet, quiet_epoch) = try_open(&engine, Peer::User(1), LONG, Delivery::Push).unwrap();
    engine.detach(&quiet, quiet_epoch);
    let script = "head -c 400000 /dev/zero; echo end; exec sleep 1000";
    let process = start(&engine, &quiet, shell("p", script)).await.unwrap();
    until("it has written", || process.summary().bytes_out > 400_000).await;
    let (noisy, epoch) = try_open(&engine, Peer::User(2), LONG, Delivery::Acked).unwrap();
    let mut floods = Vec::new();
    for n in 0..64 {
        let flood = shell(&format!("flood{n}"), "exec cat /dev/zero");
        floods.push(start(&engine, &noisy, flood).await.unwrap());
    }
    until("they use their share", || {
        floods.iter().map(kept).sum::<usize>() > 2 * MIB
    })
    .await;
    // Scarce memory is noticed by the next process that writes.
    let script = "head -c 3000000 /dev/zero";
    let read = start(&engine, &noisy, shell("read", script)).await.unwrap();
    let mut cursor = Cursor::attach(&noisy, epoch, &read, None);
    assert_eq!(read_to_end(&noisy, &mut cursor, "read").await, 3_000_000);
    assert_eq!(kept(&process), 400_004);
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn description_without_memory_is_rejected() {
    let engine = limited();
    let (session, _) = open(&engine, LONG, Delivery::Push);
    let mut large = shell("p", "true");
    large.metadata.insert("key".to_owned(), "x".repeat(MIB));
    let rejected = start(&engine, &session, large).await;
    assert!(matches!(rejected.err(), Some(StartError::TooMany)));
    assert!(start(&engine, &session, shell("p", "true")).await.is_ok());
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}
