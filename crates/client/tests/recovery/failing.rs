//! Connections that can't be replaced.

use std::{sync::atomic::Ordering, time::Duration};

use outpost_client::{ConnectionState, Error, Executor as _, ReconnectFailure, Start};
use tokio::time::Instant;

use crate::sim::{SESSION, Sim, full_server, old_server, soon, started, summarize};

#[tokio::test(start_paused = true)]
async fn everything_fails_alike_after_the_reconnect_timeout() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    let mut state = remote.connection_state();
    sim.dialer().down.store(true, Ordering::SeqCst);
    let lost_at = Instant::now();
    drop(connection);
    soon(
        "the loss",
        state.wait_for(|now| *now == ConnectionState::Recovering),
    )
    .await
    .unwrap();
    let (listed, written, waited, read_after) = tokio::join!(
        remote.environment(),
        process.write("x"),
        process.wait(),
        summarize(&process)
    );
    let took = lost_at.elapsed();
    assert!(took <= Duration::from_secs(25), "{took:?}");
    assert!(took >= Duration::from_secs(23), "{took:?}");
    let text = listed.unwrap_err().to_string();
    assert!(
        text.starts_with("exec-server transport disconnected: the connection ended; "),
        "{text}"
    );
    assert_eq!(written.unwrap_err().to_string(), text);
    assert_eq!(waited.unwrap_err().to_string(), text);
    assert_eq!(read_after, [text.as_str()]);
    assert_eq!(
        Error::Disconnected {
            reason: match state.borrow().clone() {
                ConnectionState::Failed { reason, .. } => reason,
                other => panic!("{other:?}"),
            }
        }
        .to_string(),
        text
    );
    // Later calls fail at once, without dialing.
    let dials = sim.dialer().dials.load(Ordering::SeqCst);
    sim.dialer().down.store(false, Ordering::SeqCst);
    let before = Instant::now();
    let start = remote.start(Start::new(["x"]).cwd("/")).await;
    assert_eq!(start.unwrap_err().to_string(), text);
    assert_eq!(process.terminate().await.unwrap_err().to_string(), text);
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(sim.dialer().dials.load(Ordering::SeqCst), dials);
}

#[tokio::test(start_paused = true)]
async fn unknown_session_fails_the_executor() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    drop(connection);
    let mut connection = sim.accept().await;
    let hello = connection.expect_request("initialize").await;
    let text = format!("unknown session id {SESSION}");
    connection.reject(&hello, -32600, &text).await;
    let read_after = summarize(&process).await;
    assert_eq!(
        read_after,
        [
            "exec-server transport disconnected: the connection ended; unknown session id 0f0f0f0f… (-32600)"
        ],
        "and the key of the session isn't read_after"
    );
    let error = remote.processes().await.unwrap_err();
    assert_eq!(error.to_string(), read_after[0]);
    connection.wait_closed().await;
}

#[tokio::test(start_paused = true)]
async fn taken_over_client_does_not_reconnect() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    connection.close(4001, "").await;
    assert_eq!(
        summarize(&process).await,
        ["exec-server transport disconnected: the session was taken over by another connection"]
    );
    assert_eq!(sim.dialer().dials.load(Ordering::SeqCst), 1);
    let cause = match &*remote.connection_state().borrow() {
        ConnectionState::Failed { cause, .. } => *cause,
        other => panic!("{other:?}"),
    };
    assert_eq!(cause, ReconnectFailure::TakenOver);
}

#[tokio::test(start_paused = true)]
async fn shutdown_of_the_server_fails_at_once() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    let before = Instant::now();
    connection.close(1001, "server is shutting down").await;
    assert_eq!(
        summarize(&process).await,
        ["exec-server transport disconnected: the server is shutting down"]
    );
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(sim.dialer().dials.load(Ordering::SeqCst), 1);
    let cause = match &*remote.connection_state().borrow() {
        ConnectionState::Failed { cause, .. } => *cause,
        other => panic!("{other:?}"),
    };
    assert_eq!(cause, ReconnectFailure::ShutDown);
}

#[tokio::test(start_paused = true)]
async fn close_of_a_proxy_is_followed_by_a_resume() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    started(&remote, &mut connection, "p").await;
    connection.close(1001, "going away").await;
    sim.resumed(full_server()).await;
    assert_eq!(sim.dialer().dials.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn shutdown_during_a_resume_fails_at_once() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    drop(connection);
    let mut connection = sim.accept().await;
    connection.expect_request("initialize").await;
    connection.close(1001, "server is shutting down").await;
    let text =
        "exec-server transport disconnected: the connection ended; the server is shutting down";
    assert_eq!(summarize(&process).await, [text]);
    assert_eq!(sim.dialer().dials.load(Ordering::SeqCst), 2);
    drop(remote);
}

#[tokio::test(start_paused = true)]
async fn silent_server_is_reported_before_the_connection_is_lost() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let mut state = remote.connection_state();
    let before = Instant::now();
    let silent = state.wait_for(|now| *now == ConnectionState::Unresponsive);
    drop(soon("the notice", silent).await.unwrap());
    let took = before.elapsed();
    assert!(took <= Duration::from_secs(30), "{took:?}");
    // Any byte shows that it is alive.
    connection
        .send(serde_json::json!({"method": "anything"}))
        .await;
    let alive = state.wait_for(|now| *now == ConnectionState::Connected);
    drop(soon("the byte", alive).await.unwrap());
    let before = Instant::now();
    let lost = state.wait_for(|now| *now == ConnectionState::Recovering);
    drop(soon("the loss", lost).await.unwrap());
    assert_eq!(before.elapsed().as_secs(), 60);
    drop(connection);
}

#[tokio::test(start_paused = true)]
async fn server_that_answers_pings_is_not_reported() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let state = remote.connection_state();
    let answering = connection.answer_pings();
    let waited = tokio::time::timeout(Duration::from_secs(300), answering).await;
    assert!(waited.is_err(), "the connection stays");
    assert_eq!(*state.borrow(), ConnectionState::Connected);
    assert!(!state.has_changed().unwrap());
}

#[tokio::test(start_paused = true)]
async fn connection_without_session_fails_at_once() {
    let reached_once = Sim::once();
    let without_session = Sim::new();
    for (mut sim, initialize_result) in [
        (reached_once, full_server()),
        (without_session, serde_json::json!({})),
    ] {
        let (remote, mut connection) = sim.connect(initialize_result).await;
        let process = started(&remote, &mut connection, "p").await;
        let before = Instant::now();
        let call = process.write("x");
        let server = async {
            connection.expect_request("process/write").await;
            drop(connection);
        };
        let (written, ()) = tokio::join!(call, server);
        let text = "exec-server transport disconnected: the connection ended";
        assert_eq!(written.unwrap_err().to_string(), text);
        assert_eq!(summarize(&process).await, [text]);
        assert_eq!(before.elapsed(), Duration::ZERO);
        assert_eq!(sim.dialer().dials.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn first_connection_times_out() {
    let mut sim = Sim::new();
    let connecting = outpost_client::RemoteExecutor::with_dialer(
        sim.shared_dialer(),
        outpost_client::RemoteOptions::default(),
    );
    let (connected, mut connection) = tokio::join!(connecting, sim.accept());
    let error = connected.err().unwrap();
    assert_eq!(error.to_string(), "connecting took longer than 10s");
    connection.expect_request("initialize").await;
    connection.wait_closed().await;
    sim.dialer().down.store(true, Ordering::SeqCst);
    let connecting = outpost_client::RemoteExecutor::with_dialer(
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

/// The messages of an error and its sources.
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
async fn attached_session_is_rejected_after_the_timeout() {
    let mut sim = Sim::new();
    let options = outpost_client::RemoteOptions::default().resume(SESSION.to_owned());
    let connecting = outpost_client::RemoteExecutor::with_dialer(sim.shared_dialer(), options);
    let serving = async {
        let mut connection = sim.accept().await;
        loop {
            let hello = connection.expect_request("initialize").await;
            let text = format!("session {SESSION} is already attached to another connection");
            connection.reject(&hello, -32010, &text).await;
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
