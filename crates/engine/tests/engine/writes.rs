//! Writes, write ids, and the queue of a child that does not read.

use std::time::Duration;

use bytes::Bytes;
use outpost_engine::{Delivery, Event, Limits, Seq, Stream, WriteStatus};

use crate::owner::{Cursor, engine, open, shell, start};

const LONG: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread")]
async fn retries_of_pending_write_get_its_status() {
    let engine = engine(Limits {
        stdin_bytes: 1024,
        ..Limits::default()
    });
    let (session, epoch) = open(&engine, LONG, Delivery::Push);
    // Reads nothing until it gets a signal.
    let script = "trap 'exec wc -c' USR1; echo ready; while :; do sleep 0.01; done";
    let process = start(&engine, &session, shell("p", script)).await.unwrap();
    let mut cursor = Cursor::attach(&session, epoch, &process, None);
    cursor.next(1 << 20).await;
    // Far more than the pipe holds, so the queue is full.
    let filler = Bytes::from(vec![b'x'; 4 << 20]);
    assert_eq!(
        process.write(filler, Some("filler".into()), false).await,
        WriteStatus::Accepted
    );
    let once = || {
        let process = process.clone();
        tokio::spawn(async move {
            process
                .write(
                    Bytes::from_static(b"0123456789"),
                    Some("once".into()),
                    false,
                )
                .await
        })
    };
    let tries = [once(), once(), once()];
    for attempt in &tries {
        assert!(!attempt.is_finished(), "the queue is full");
    }
    process.signal(outpost_engine::Signal::User1);
    for attempt in tries {
        assert_eq!(attempt.await.unwrap(), WriteStatus::Accepted);
    }
    assert_eq!(
        process.write(Bytes::new(), None, true).await,
        WriteStatus::Accepted
    );
    let mut output = Vec::new();
    loop {
        let events = cursor.next(1 << 20).await;
        for event in &events {
            if let Event::Output(chunk) = event
                && chunk.stream == Stream::Stdout
            {
                output.extend_from_slice(&chunk.bytes);
            }
        }
        if process.page(Seq::START, None).closed {
            break;
        }
    }
    let counted = String::from_utf8_lossy(&output).trim().to_owned();
    assert_eq!(counted, ((4 << 20) + 10).to_string(), "written once");
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_writer_is_released_when_process_ends() {
    let engine = engine(Limits {
        stdin_bytes: 1024,
        ..Limits::default()
    });
    let (session, _) = open(&engine, LONG, Delivery::Push);
    let process = start(&engine, &session, shell("p", "exec sleep 1000"))
        .await
        .unwrap();
    let filler = Bytes::from(vec![b'x'; 1 << 20]);
    assert_eq!(
        process.write(filler.clone(), None, false).await,
        WriteStatus::Accepted
    );
    let waiting = {
        let process = process.clone();
        tokio::spawn(async move { process.write(filler, None, false).await })
    };
    session.terminate("p", None, false);
    let answer = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    assert_eq!(answer.expect("released").unwrap(), WriteStatus::StdinClosed);
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}
