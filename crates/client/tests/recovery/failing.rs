//! The connection doesn't come back.

use std::{sync::atomic::Ordering, time::Duration};

use outpost_client::{Cause, Error, Place as _, Standing, Start};
use tokio::time::Instant;

use crate::sim::{SESSION, Sim, capable, released, soon, started, tale};

#[tokio::test(start_paused = true)]
async fn after_twenty_five_seconds_everything_fails_with_the_same_words() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let process = started(&remote, &mut line, "p").await;
    let mut standing = remote.standing();
    sim.dialer().down.store(true, Ordering::SeqCst);
    let lost_at = Instant::now();
    drop(line);
    soon(
        "the loss",
        standing.wait_for(|now| *now == Standing::Recovering),
    )
    .await
    .unwrap();
    let (listed, written, waited, told) = tokio::join!(
        remote.environment(),
        process.write("x"),
        process.wait(),
        tale(&process)
    );
    let took = lost_at.elapsed();
    assert!(took <= Duration::from_secs(25), "{took:?}");
    assert!(took >= Duration::from_secs(23), "{took:?}");
    let words = listed.unwrap_err().to_string();
    assert!(
        words.starts_with("exec-server transport disconnected: the connection ended; "),
        "{words}"
    );
    assert_eq!(written.unwrap_err().to_string(), words);
    assert_eq!(waited.unwrap_err().to_string(), words);
    assert_eq!(told, [words.as_str()]);
    assert_eq!(
        Error::Disconnected {
            reason: match standing.borrow().clone() {
                Standing::Failed { reason, .. } => reason,
                other => panic!("{other:?}"),
            }
        }
        .to_string(),
        words
    );
    // And later ones at once, with nothing sent and nobody dialled.
    let dials = sim.dialer().dials.load(Ordering::SeqCst);
    sim.dialer().down.store(false, Ordering::SeqCst);
    let before = Instant::now();
    let start = remote.start(Start::new(["x"]).cwd("/")).await;
    assert_eq!(start.unwrap_err().to_string(), words);
    assert_eq!(process.terminate().await.unwrap_err().to_string(), words);
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(sim.dialer().dials.load(Ordering::SeqCst), dials);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_comes_back_without_its_sessions_is_the_end() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let process = started(&remote, &mut line, "p").await;
    drop(line);
    let mut line = sim.accept().await;
    let hello = line.asked_for("initialize").await;
    let words = format!("unknown session id {SESSION}");
    line.refuse(&hello, -32600, &words).await;
    let told = tale(&process).await;
    assert_eq!(
        told,
        [
            "exec-server transport disconnected: the connection ended; unknown session id 0f0f0f0f… (-32600)"
        ],
        "and the key of the session isn't told"
    );
    let error = remote.processes().await.unwrap_err();
    assert_eq!(error.to_string(), told[0]);
    line.hung_up().await;
}

#[tokio::test(start_paused = true)]
async fn who_was_taken_over_does_not_fight() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let process = started(&remote, &mut line, "p").await;
    line.close(4001).await;
    assert_eq!(
        tale(&process).await,
        ["exec-server transport disconnected: the session was taken over by another connection"]
    );
    assert_eq!(sim.dialer().dials.load(Ordering::SeqCst), 1);
    let cause = match &*remote.standing().borrow() {
        Standing::Failed { cause, .. } => *cause,
        other => panic!("{other:?}"),
    };
    assert_eq!(cause, Cause::TakenOver);
}

#[tokio::test(start_paused = true)]
async fn where_nothing_can_be_resumed_it_fails_at_once() {
    let reached_once = Sim::once();
    let without_session = Sim::new();
    for (mut sim, welcome) in [
        (reached_once, capable()),
        (without_session, serde_json::json!({})),
    ] {
        let (remote, mut line) = sim.connect(welcome).await;
        let process = started(&remote, &mut line, "p").await;
        let before = Instant::now();
        let call = process.write("x");
        let server = async {
            line.asked_for("process/write").await;
            drop(line);
        };
        let (written, ()) = tokio::join!(call, server);
        let words = "exec-server transport disconnected: the connection ended";
        assert_eq!(written.unwrap_err().to_string(), words);
        assert_eq!(tale(&process).await, [words]);
        assert_eq!(before.elapsed(), Duration::ZERO);
        assert_eq!(sim.dialer().dials.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_connection_that_is_not_answered_is_given_up() {
    let mut sim = Sim::new();
    let connecting = outpost_client::Remote::over(
        sim.shared_dialer(),
        outpost_client::RemoteOptions::default(),
    );
    let (connected, mut line) = tokio::join!(connecting, sim.accept());
    let error = connected.err().unwrap();
    assert_eq!(error.to_string(), "connecting took longer than 10s");
    line.asked_for("initialize").await;
    line.hung_up().await;
    sim.dialer().down.store(true, Ordering::SeqCst);
    let connecting = outpost_client::Remote::over(
        sim.shared_dialer(),
        outpost_client::RemoteOptions::default(),
    );
    let error = connecting.await.err().unwrap();
    assert!(matches!(error, Error::Unreachable { .. }));
    assert_eq!(
        chain(&error),
        [
            "cannot connect to the simulated server",
            "connection refused"
        ],
        "and nothing twice"
    );
}

/// The texts of an error and of what is behind it.
fn chain(error: &dyn std::error::Error) -> Vec<String> {
    let mut texts = vec![error.to_string()];
    let mut next = error.source();
    while let Some(error) = next {
        texts.push(error.to_string());
        next = error.source();
    }
    texts
}

#[tokio::test(start_paused = true)]
async fn a_session_that_somebody_keeps_is_refused_in_the_end() {
    let mut sim = Sim::new();
    let options = outpost_client::RemoteOptions {
        resume: Some(SESSION.to_owned()),
        ..outpost_client::RemoteOptions::default()
    };
    let connecting = outpost_client::Remote::over(sim.shared_dialer(), options);
    let serving = async {
        let mut line = sim.accept().await;
        loop {
            let hello = line.asked_for("initialize").await;
            let words = format!("session {SESSION} is already attached to another connection");
            line.refuse(&hello, -32010, &words).await;
        }
    };
    let error = tokio::select! {
        connected = connecting => connected.err().unwrap(),
        () = serving => unreachable!("it goes on for ever"),
    };
    assert_eq!(
        error.to_string(),
        "session 0f0f0f0f… is already attached to another connection (-32010)"
    );
}
