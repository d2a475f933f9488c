//! Shares of sessions, processes and closed processes: no client takes everything.

use std::time::Duration;

use outpost_engine::{
    Delivery, Engine, Limits, Peer, Process, ProcessState, ResumeError, Seq, Session, StartError,
};

use crate::owner::{engine, open, resume, shell, start, try_open, until};

const LONG: Duration = Duration::from_secs(24 * 3600);

fn has_closed(process: &Process) -> bool {
    process.summary().state == ProcessState::Closed
}

/// Runs a command to its end.
async fn run(engine: &Engine, session: &Session, id: &str, script: &str) -> Process {
    let process = start(engine, session, shell(id, script)).await.unwrap();
    until("it is closed", || has_closed(&process)).await;
    process
}

fn retained(process: &Process) -> Vec<u8> {
    let chunks = process.page(Seq::START, None).chunks;
    chunks
        .iter()
        .flat_map(|chunk| chunk.bytes.to_vec())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_and_tails_outlive_the_bulk_of_output() {
    let limit = 4 * 1024 * 1024;
    let engine = engine(Limits {
        closed_processes: 64,
        closed_bytes: limit,
        ..Limits::default()
    });
    let (session, epoch) = open(&engine, LONG, Delivery::Push);
    engine.detach(&session, epoch);
    run(&engine, &session, "small", "echo result; exit 3").await;
    for n in 0..20 {
        let script = format!("seq 1 100000; echo end {n}; exit 7");
        run(&engine, &session, &format!("large{n}"), &script).await;
    }
    let processes = session.processes();
    let total = || {
        processes
            .iter()
            .map(|process| retained(process).len() as u64)
            .sum::<u64>()
    };
    until("output is cut", || total() <= limit).await;
    assert_eq!(session.list().len(), 21, "every process is listed");
    let small = session.find("small").unwrap();
    assert_eq!(retained(&small), b"result\n");
    assert_eq!(small.summary().exit.map(|exit| exit.code), Some(3));
    for n in 0..20 {
        let large = session.find(&format!("large{n}")).unwrap();
        assert_eq!(large.summary().exit.map(|exit| exit.code), Some(7));
        let text = String::from_utf8(retained(&large)).unwrap();
        assert!(text.ends_with(&format!("\nend {n}\n")), "its end is kept");
    }
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn session_does_not_evict_results_of_another() {
    let engine = engine(Limits {
        closed_processes: 10,
        ..Limits::default()
    });
    let (victim, epoch) = open(&engine, LONG, Delivery::Push);
    engine.detach(&victim, epoch);
    run(&engine, &victim, "p", "echo result; exit 7").await;
    let (busy, _busy_epoch) = open(&engine, LONG, Delivery::Push);
    for n in 0..30 {
        run(&engine, &busy, &format!("p{n}"), "exit 0").await;
    }
    until("the oldest of the busy session are gone", || {
        busy.list().len() < 10
    })
    .await;
    let kept = victim.find("p").unwrap();
    assert_eq!(kept.summary().exit.map(|exit| exit.code), Some(7));
    assert_eq!(retained(&kept), b"result\n");
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_without_processes_give_way() {
    let engine = engine(Limits {
        max_sessions: 4,
        ..Limits::default()
    });
    let (busy, epoch) = open(&engine, LONG, Delivery::Push);
    let sleeps = shell("p", "exec sleep 1000");
    start(&engine, &busy, sleeps).await.unwrap();
    engine.detach(&busy, epoch);
    let (oldest, epoch) = open(&engine, LONG, Delivery::Push);
    engine.detach(&oldest, epoch);
    for _ in 0..20 {
        let (session, epoch) = open(&engine, LONG, Delivery::Push);
        engine.detach(&session, epoch);
    }
    assert_eq!(engine.list_sessions().len(), 4);
    assert_eq!(resume(&engine, &oldest), Err(ResumeError::Gone));
    assert!(resume(&engine, &busy).is_ok(), "it has a process");
    // Attached sessions do not give way.
    let peer = Peer::Unverified;
    let attached: Vec<_> = (0..3)
        .map(|_| open(&engine, LONG, Delivery::Push))
        .collect();
    assert!(try_open(&engine, peer, LONG, Delivery::Push).is_none());
    assert_eq!(attached.len(), 3);
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_of_a_session_without_processes_is_limited() {
    let engine = engine(Limits {
        empty_session_ttl: Duration::from_millis(50),
        closed_retention: Duration::from_millis(50),
        ..Limits::default()
    });
    let (running, epoch) = open(&engine, LONG, Delivery::Push);
    let reads = shell("p", "read line");
    let process = start(&engine, &running, reads).await.unwrap();
    engine.detach(&running, epoch);
    let (empty, epoch) = open(&engine, LONG, Delivery::Push);
    engine.detach(&empty, epoch);
    until("the empty one has expired", || {
        engine.list_sessions().len() == 1
    })
    .await;
    assert_eq!(resume(&engine, &empty), Err(ResumeError::Gone));
    assert!(process.is_running());
    process
        .write(bytes::Bytes::from_static(b"x\n"), None, true)
        .await;
    until("the other one has expired", || {
        engine.list_sessions().is_empty()
    })
    .await;
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn peer_leaves_processes_and_sessions_for_others() {
    let engine = engine(Limits {
        max_processes: 9,
        max_sessions: 9,
        owner_sessions: 1,
        ..Limits::default()
    });
    let open = |peer| try_open(&engine, peer, LONG, Delivery::Push);
    let (session, _epoch) = open(Peer::User(1)).unwrap();
    let mut started = 0;
    let refused = loop {
        let sleeps = shell(&started.to_string(), "exec sleep 1000");
        match start(&engine, &session, sleeps).await {
            Ok(_) => started += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, StartError::TooMany), "{refused}");
    assert_eq!(started, 8);
    let mut attached = Vec::new();
    while let Some(opened) = open(Peer::User(1)) {
        attached.push(opened);
    }
    assert_eq!(attached.len(), 7);
    let (other, _epoch) = open(Peer::User(2)).expect("a session is left for another peer");
    let sleeps = shell("p", "exec sleep 1000");
    start(&engine, &other, sleeps)
        .await
        .expect("a process is left for another peer");
    assert!(open(Peer::User(3)).is_none());
    let (owner, _epoch) = open(Peer::Owner).expect("the owner has one of its own");
    start(&engine, &owner, shell("o", "exec sleep 1000"))
        .await
        .expect("the owner has a process of its own");
    let refused = start(&engine, &owner, shell("o2", "exec sleep 1000")).await;
    assert!(matches!(refused, Err(StartError::TooMany)));
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_first_process_of_a_session_needs_a_busy_session() {
    let engine = engine(Limits::default());
    let sessions = [1, 1, 2].map(|user| {
        let opened = try_open(&engine, Peer::User(user), LONG, Delivery::Push);
        opened.expect("few sessions are open").0
    });
    let [busy, idle, other] = &sessions;
    let reserve = |session, id| engine.reserve(session, &shell(id, "true"), Some(1));
    let _first = reserve(busy, "first").unwrap();
    let _second = reserve(busy, "second").unwrap();
    assert!(matches!(
        reserve(idle, "third").err(),
        Some(StartError::SessionLimit(1))
    ));
    assert!(reserve(other, "of another peer").is_ok());
}
