//! Sessions that expire, are closed, or end during a start.

use std::{pin::pin, time::Duration};

use outpost_engine::{
    Delivery, Engine, Epoch, Limits, ProcessState, ReadError, ResumeError, Session, Start,
    StartError, Terminated,
};

use crate::owner::{engine, is_alive, open, resume, shell, start, until};

const LONG: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread")]
async fn expired_session_ends_its_processes() {
    let engine = engine(Limits {
        termination_grace: Duration::from_millis(200),
        ..Limits::default()
    });
    let (session, epoch) = open(&engine, Duration::from_millis(50), Delivery::Push);
    let stubborn = "trap '' TERM HUP; sleep 1000 & while :; do sleep 0.01; done";
    let process = start(&engine, &session, shell("p", stubborn))
        .await
        .unwrap();
    engine.detach(&session, epoch);
    until("it is gone", || !is_alive(process.pid())).await;
    assert_eq!(resume(&engine, &session), Err(ResumeError::Gone));
    assert!(matches!(session.find("p"), Err(ReadError::Unknown(_))));
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn resumed_session_does_not_expire() {
    let engine = engine(Limits::default());
    let lease = Duration::from_millis(300);
    let (session, epoch) = open(&engine, lease, Delivery::Push);
    let (other, other_epoch) = open(&engine, lease, Delivery::Push);
    let process = start(&engine, &session, shell("p", "exec sleep 1000"))
        .await
        .unwrap();
    engine.detach(&session, epoch);
    resume(&engine, &session).unwrap();
    // A lease that started after the resumed one has expired.
    engine.detach(&other, other_epoch);
    until("the other has expired", || engine.list_sessions().len() < 2).await;
    assert!(engine.find_session(session.id().reveal()).is_some());
    assert!(process.is_running());
    assert!(engine.shutdown(Duration::from_secs(5)).await);
    assert!(!is_alive(process.pid()));
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_connection_cannot_detach_its_successor() {
    let engine = engine(Limits::default());
    let (session, old) = open(&engine, Duration::ZERO, Delivery::Push);
    assert_eq!(resume(&engine, &session), Err(ResumeError::Attached));
    let (_, new) = engine
        .resume_session(
            session.id().reveal(),
            outpost_engine::ResumeOptions {
                peer: outpost_engine::Peer::Unverified,
                takeover: true,
                delivery: None,
                ttl: None,
            },
            std::sync::Arc::new(Nobody),
        )
        .unwrap();
    engine.detach(&session, old);
    assert!(session.is_attached());
    engine.detach(&session, new);
    assert!(!session.is_attached());
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

struct Nobody;

impl outpost_engine::Link for Nobody {
    fn probe(&self) {}
    fn replaced(&self) {}
    fn adopt(
        &self,
        _: &outpost_engine::Session,
        _: outpost_engine::Epoch,
        _: &outpost_engine::Process,
    ) {
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn start_during_end_of_session_leaves_no_process() {
    in_flight(LONG, async |engine, session, _| {
        engine.end_session(session).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn start_during_expiry_of_session_leaves_no_process() {
    in_flight(Duration::ZERO, async |engine, session, epoch| {
        engine.detach(session, epoch);
    })
    .await;
}

/// Starts a process while its session ends.
async fn in_flight(ttl: Duration, end: impl AsyncFn(&Engine, &Session, Epoch)) {
    let engine = engine(Limits::default());
    let directory = tempfile::tempdir().unwrap();
    for round in 0..30 {
        let (session, epoch) = open(&engine, ttl, Delivery::Push);
        let mark = directory.path().join(format!("pid{round}"));
        let script = format!("echo $$ > {}; exec sleep 1000", mark.display());
        let starting = shell("p", &script);
        let reservation = session.reserve(&starting).unwrap();
        let (started, ()) = tokio::join!(
            engine.start(&session, reservation, starting),
            end(&engine, &session, epoch)
        );
        assert!(matches!(started, Ok(_) | Err(StartError::SessionEnded)));
        if let Ok(process) = &started {
            until("it is gone", || !is_alive(process.pid())).await;
        }
        let pid = std::fs::read_to_string(&mark)
            .ok()
            .and_then(|pid| pid.trim().parse().ok());
        if let Some(pid) = pid {
            until("it is gone", || !is_alive(pid)).await;
        }
    }
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn terminate_cancels_start() {
    let engine = engine(Limits::default());
    let (session, _) = open(&engine, LONG, Delivery::Push);
    let starting = shell("p", "exec sleep 1000");
    let reservation = session.reserve(&starting).unwrap();
    assert_eq!(session.terminate("p", None, false), Terminated::Running);
    let started = engine.start(&session, reservation, starting).await;
    match started {
        Err(StartError::Cancelled(id)) => assert_eq!(id, "p"),
        other => panic!("{:?}", other.map(|process| process.pid())),
    }
    assert!(
        matches!(session.find("p"), Err(ReadError::Unknown(_))),
        "the name is free again"
    );
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn cancellation_takes_precedence_over_other_errors() {
    let engine = engine(Limits::default());
    let fine = shell("p", "exec sleep 1000");
    let missing = Start {
        argv: vec!["/no/such".to_owned()],
        ..fine.clone()
    };
    let nowhere = Start {
        cwd: "/no/such".into(),
        ..fine.clone()
    };
    for starting in [missing, nowhere, fine] {
        until_cancelled(&engine, &starting).await;
    }
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

/// Cancels a start that was polled once. Retries if the start had completed by then.
async fn until_cancelled(engine: &outpost_engine::Engine, starting: &Start) {
    loop {
        let (session, _) = open(engine, LONG, Delivery::Push);
        let reservation = session.reserve(starting).unwrap();
        let mut started = pin!(engine.start(&session, reservation, starting.clone()));
        tokio::select! {
            biased;
            _ = &mut started => {
                engine.end_session(&session).await;
                continue;
            }
            () = std::future::ready(()) => {}
        }
        assert_eq!(session.terminate("p", None, false), Terminated::Running);
        match started.await {
            Err(StartError::Cancelled(id)) => assert_eq!(id, "p"),
            other => panic!("{:?}", other.map(|process| process.pid())),
        }
        assert!(matches!(session.find("p"), Err(ReadError::Unknown(_))));
        return;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leftover_processes_end_with_the_session() {
    let limits = Limits {
        closed_retention: Duration::ZERO,
        termination_grace: Duration::from_millis(200),
        ..Limits::default()
    };
    let engine = engine(limits);
    let directory = tempfile::tempdir().unwrap();
    let mark = directory.path().join("pid");
    let (session, _) = open(&engine, LONG, Delivery::Push);
    let script = format!(
        "sh -c 'echo $$ > {}; exec sleep 1000' </dev/null >/dev/null 2>&1 & until [ -s {0} ]; do sleep 0.01; done",
        mark.display()
    );
    start(&engine, &session, shell("p", &script)).await.unwrap();
    until("it is closed and forgotten", || session.find("p").is_err()).await;
    let left: u32 = std::fs::read_to_string(&mark)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(is_alive(left), "a natural exit kills nothing");
    engine.end_session(&session).await;
    until("it is gone", || !is_alive(left)).await;
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

fn forgetful(end_forgotten_sessions: bool) -> outpost_engine::Engine {
    engine(Limits {
        closed_retention: Duration::from_millis(50),
        end_forgotten_sessions,
        ..Limits::default()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn forgotten_session_ends_if_configured() {
    let engine = forgetful(true);
    let (session, epoch) = open(&engine, LONG, Delivery::Push);
    let (empty, none) = open(&engine, LONG, Delivery::Push);
    start(&engine, &session, shell("p", "exit 0"))
        .await
        .unwrap();
    start(&engine, &session, shell("q", "sleep 0.2"))
        .await
        .unwrap();
    engine.detach(&session, epoch);
    engine.detach(&empty, none);
    until("it has ended", || engine.list_sessions().len() == 1).await;
    assert_eq!(resume(&engine, &session), Err(ResumeError::Gone));
    assert!(resume(&engine, &empty).is_ok(), "it never had any");
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn session_with_leftovers_or_owner_does_not_end() {
    let engine = forgetful(true);
    let (left, epoch) = open(&engine, LONG, Delivery::Push);
    let leaves = "sleep 1000 >/dev/null 2>&1 </dev/null & exit 0";
    let process = start(&engine, &left, shell("p", leaves)).await.unwrap();
    engine.detach(&left, epoch);
    let (attached, owner) = open(&engine, LONG, Delivery::Push);
    start(&engine, &attached, shell("p", "exit 0"))
        .await
        .unwrap();
    let (third, gone) = open(&engine, LONG, Delivery::Push);
    start(&engine, &third, shell("p", "exit 0")).await.unwrap();
    engine.detach(&third, gone);
    until("the third has ended", || engine.list_sessions().len() == 2).await;
    until("it is forgotten", || left.find("p").is_err()).await;
    assert!(engine.find_session(left.id().reveal()).is_some());
    assert!(engine.find_session(attached.id().reveal()).is_some());
    engine.detach(&attached, owner);
    until("no connection is attached", || {
        engine.list_sessions().len() == 1
    })
    .await;
    // The leftover processes are gone, and the session ends at the next check.
    process.kill_tree();
    let (last, epoch) = open(&engine, LONG, Delivery::Push);
    start(&engine, &last, shell("p", "exit 0")).await.unwrap();
    engine.detach(&last, epoch);
    until("all have ended", || engine.list_sessions().is_empty()).await;
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn session_stays_for_its_lease_by_default() {
    let engine = forgetful(false);
    let (session, epoch) = open(&engine, LONG, Delivery::Push);
    start(&engine, &session, shell("p", "exit 0"))
        .await
        .unwrap();
    engine.detach(&session, epoch);
    until("it is forgotten", || session.find("p").is_err()).await;
    assert!(resume(&engine, &session).is_ok());
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_are_listed_in_the_order_of_their_starts() {
    let engine = engine(Limits::default());
    let (session, _) = open(&engine, LONG, Delivery::Push);
    let first = session.reserve(&shell("c", "true")).unwrap();
    let running = shell("b", "exec sleep 1000");
    start(&engine, &session, running).await.unwrap();
    let last = session.reserve(&shell("a", "true")).unwrap();
    let entries = session.list().into_iter();
    let listed: Vec<_> = entries
        .map(|entry| (entry.process_id, entry.state))
        .collect();
    assert_eq!(
        listed,
        [
            ("c".to_owned(), ProcessState::Starting),
            ("b".to_owned(), ProcessState::Running),
            ("a".to_owned(), ProcessState::Starting),
        ]
    );
    drop((first, last));
    assert!(engine.shutdown(Duration::from_secs(5)).await);
}
