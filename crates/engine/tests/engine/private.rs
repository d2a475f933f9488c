//! Private sessions, and streams that stay open after the exit.

use std::time::Duration;

use outpost_engine::{
    Delivery, Event, Limits, OutputEnd, Peer, Process, ReadError, ResumeError, Start, StartError,
};

use crate::owner::{Cursor, TIMEOUT, engine, is_alive, open, resume, shell, until};

/// The interval of polling.
const LOOK: Duration = Duration::from_millis(10);

/// Reads to the end. Returns how the streams ended, and the output.
async fn ended(cursor: &mut Cursor) -> (OutputEnd, Vec<u8>) {
    let mut output = Vec::new();
    loop {
        for event in cursor.next(usize::MAX).await {
            match event {
                Event::Output(chunk) => output.extend_from_slice(&chunk.bytes),
                Event::Closed { end, .. } => return (end, output),
                Event::Exited { .. } => {}
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn private_session_is_invisible_to_others() {
    let engine = engine(Limits {
        max_sessions: 1,
        ..Limits::default()
    });
    let (private, _) = engine
        .open_private_session(Peer::Unverified)
        .expect("the engine runs");
    assert!(engine.list_sessions().is_empty());
    assert_eq!(resume(&engine, &private), Err(ResumeError::Gone));
    // It does not count against the limit on sessions.
    let (session, _) = open(&engine, Duration::ZERO, Delivery::Push);
    assert_eq!(engine.list_sessions().len(), 1);
    engine.end_private_session(&private);
    assert!(session.is_attached());
    assert!(engine.shutdown(Duration::from_secs(5)).await);
    assert!(engine.open_private_session(Peer::Unverified).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn end_of_private_session_kills_processes_and_leftovers() {
    let engine = engine(Limits {
        // No grace period applies.
        termination_grace: Duration::from_secs(600),
        ..Limits::default()
    });
    let (session, epoch) = engine
        .open_private_session(Peer::Unverified)
        .expect("the engine runs");
    let start = shell("left", "sleep 1000 >/dev/null 2>&1 </dev/null & echo $!");
    let reservation = session.reserve(&start).unwrap();
    let left = engine.start(&session, reservation, start).await.unwrap();
    let mut cursor = Cursor::attach(&session, epoch, &left, None);
    let (_, output) = ended(&mut cursor).await;
    let daemon: u32 = String::from_utf8(output).unwrap().trim().parse().unwrap();
    session.forget(&left);
    assert!(matches!(session.find("left"), Err(ReadError::Unknown(_))));
    assert!(is_alive(daemon));

    let start = shell("stubborn", "trap '' TERM HUP; while :; do sleep 0.01; done");
    let reservation = session.reserve(&start).unwrap();
    let stubborn = engine.start(&session, reservation, start).await.unwrap();
    engine.end_private_session(&session);
    until("they are gone", || {
        !is_alive(stubborn.pid()) && !is_alive(daemon)
    })
    .await;
    let late = session.reserve(&shell("late", "true")).err();
    assert!(matches!(late, Some(StartError::SessionEnded)), "{late:?}");
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn unacknowledged_exit_still_counts_as_process() {
    let engine = engine(Limits {
        max_processes: 2,
        ..Limits::default()
    });
    let (session, epoch) = engine
        .open_private_session(Peer::Unverified)
        .expect("the engine runs");
    let run = async |id: &str, script: &str| {
        let start = shell(id, script);
        let reservation = session.reserve(&start)?;
        engine.start(&session, reservation, start).await
    };
    let told = run("told", "true").await.unwrap();
    // Receives the exit but does not acknowledge it.
    ended(&mut Cursor::attach(&session, epoch, &told, None)).await;
    // A later exit that is acknowledged makes space for one process, not for two.
    let other = run("other", "true").await.unwrap();
    ended(&mut Cursor::attach(&session, epoch, &other, None)).await;
    session.forget(&other);
    until_started(async || run("second", "exec sleep 1000").await).await;
    let refused = run("early", "true").await.err();
    assert!(matches!(refused, Some(StartError::TooMany)), "{refused:?}");
    session.forget(&told);
    until_started(async || run("untold", "true").await).await;
    // The end of the connection ends the wait too.
    engine.end_private_session(&session);
    let (next, _) = engine
        .open_private_session(Peer::Unverified)
        .expect("the engine runs");
    for id in ["next", "another"] {
        until_started(async || {
            let start = shell(id, "exec sleep 1000");
            let reservation = next.reserve(&start)?;
            engine.start(&next, reservation, start).await
        })
        .await;
    }
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

/// Retries a start until the limit on processes allows it.
async fn until_started(start: impl AsyncFn() -> Result<Process, StartError>) -> Process {
    tokio::time::timeout(TIMEOUT, async {
        loop {
            match start().await {
                Ok(process) => return process,
                // sleep: a freed permit causes no event
                Err(StartError::TooMany) => tokio::time::sleep(LOOK).await,
                Err(error) => panic!("{error}"),
            }
        }
    })
    .await
    .expect("a place becomes free")
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_ends_private_sessions() {
    let engine = engine(Limits::default());
    let (session, _) = engine
        .open_private_session(Peer::Unverified)
        .expect("the engine runs");
    let start = shell("p", "exec sleep 1000");
    let reservation = session.reserve(&start).unwrap();
    let process = engine.start(&session, reservation, start).await.unwrap();
    assert!(engine.shutdown(Duration::from_secs(5)).await);
    assert!(!is_alive(process.pid()));
}

#[tokio::test(flavor = "multi_thread")]
async fn held_streams_are_closed_after_drain_timeout() {
    let engine = engine(Limits::default());
    let (session, epoch) = open(&engine, Duration::ZERO, Delivery::Push);
    let start = Start {
        drain: Some(Duration::from_millis(200)),
        ..shell("p", "sleep 1000 & echo early")
    };
    let reservation = session.reserve(&start).unwrap();
    let process = engine.start(&session, reservation, start).await.unwrap();
    let mut cursor = Cursor::attach(&session, epoch, &process, None);
    let (end, output) = ended(&mut cursor).await;
    assert_eq!((end, &output[..]), (OutputEnd::GivenUp, &b"early\n"[..]));

    // Output of a process that closes the stream in time is complete.
    let start = Start {
        drain: Some(Duration::from_secs(600)),
        ..shell("q", "(sleep 0.1; echo late) & echo early")
    };
    let reservation = session.reserve(&start).unwrap();
    let process = engine.start(&session, reservation, start).await.unwrap();
    let mut cursor = Cursor::attach(&session, epoch, &process, None);
    let (end, output) = ended(&mut cursor).await;
    assert_eq!(
        (end, &output[..]),
        (OutputEnd::Whole, &b"early\nlate\n"[..])
    );
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}
