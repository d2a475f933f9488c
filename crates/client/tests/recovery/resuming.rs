//! Resumed sessions.

use std::{sync::atomic::Ordering, time::Duration};

use outpost_client::{
    ConnectionState, Error, Executor as _, Lease, RemoteExecutor, RemoteOptions, Signal,
};
use serde_json::json;
use tokio::time::Instant;

use crate::sim::{SESSION, Sim, full_server, old_server, soon, started, summarize};

#[tokio::test(start_paused = true)]
async fn lost_response_fails_its_call_unless_it_is_a_write() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    let cut = async {
        let (mut signals, mut writes) = (0, Vec::new());
        while signals == 0 || writes.is_empty() {
            let request = connection.next().await;
            match request["method"].as_str() {
                Some("process/signal") => signals += 1,
                Some("process/write") => writes.push(request["params"].clone()),
                other => panic!("{other:?}"),
            }
        }
        drop(connection);
        let (mut connection, _) = sim.resumed(full_server()).await;
        let again = connection.expect_request("process/write").await;
        assert_eq!(again["params"], writes[0], "same write id and bytes");
        connection
            .respond(&again, json!({"status": "accepted"}))
            .await;
        connection.expect_silence(Duration::from_secs(5)).await;
        connection
    };
    let (signalled, written, _connection) = tokio::join!(
        process.signal(Signal::Interrupt),
        process.write("bytes"),
        cut
    );
    let error = signalled.unwrap_err();
    assert!(matches!(error, Error::Disconnected { .. }));
    assert_eq!(
        error.to_string(),
        "exec-server transport disconnected: the connection ended"
    );
    written.unwrap();
}

#[tokio::test(start_paused = true)]
async fn calls_wait_during_recovery() {
    let mut sim = Sim::new();
    let (remote, connection) = sim.connect(full_server()).await;
    let mut state = remote.connection_state();
    sim.dialer().down.store(true, Ordering::SeqCst);
    drop(connection);
    soon(
        "the loss",
        state.wait_for(|now| *now == ConnectionState::Recovering),
    )
    .await
    .unwrap();
    let call = remote.processes();
    let back = async {
        // sleep: the time in which the server is down
        tokio::time::sleep(Duration::from_secs(10)).await;
        sim.dialer().down.store(false, Ordering::SeqCst);
        let (mut connection, params) = sim.resumed(full_server()).await;
        assert_eq!(params["delivery"], "acked");
        let list = connection.expect_request("process/list").await;
        connection.respond(&list, json!({"processes": []})).await;
        connection
    };
    let (listed, _connection) = tokio::join!(call, back);
    assert!(listed.unwrap().is_empty());
    assert_eq!(*state.borrow(), ConnectionState::Connected);
}

#[tokio::test(start_paused = true)]
async fn attached_session_is_requested_again_on_the_same_connection() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    drop(connection);
    let mut connection = sim.accept().await;
    let before = Instant::now();
    for _ in 0..20 {
        let hello = connection.expect_request("initialize").await;
        let text = format!("session {SESSION} is already attached to another connection");
        connection.reject(&hello, -32010, &text).await;
    }
    let hello = connection.expect_request("initialize").await;
    connection.respond(&hello, full_server()).await;
    connection.expect_notification("initialized").await;
    assert!(before.elapsed() > Duration::from_secs(2), "with delays");
    assert!(before.elapsed() < Duration::from_secs(20));
    assert_eq!(sim.dialer().dials.load(Ordering::SeqCst), 2);
    connection.exited("p", 1, 0).await;
    connection.closed("p", 2).await;
    assert_eq!(summarize(&process).await, ["1 exit 0", "2 closed"]);
}

#[tokio::test(start_paused = true)]
async fn rejection_wins_over_the_connect_timeout() {
    for round_trip in [0, 200, 1000, 4000, 9000] {
        let mut sim = Sim::new();
        let options = RemoteOptions::default().resume(SESSION);
        let connecting = RemoteExecutor::with_dialer(sim.shared_dialer(), options);
        let rejecting = async {
            let mut connection = sim.accept().await;
            loop {
                let hello = connection.expect_request("initialize").await;
                // sleep: the delay of the link, in paused time
                tokio::time::sleep(Duration::from_millis(round_trip)).await;
                let text = format!("session {SESSION} is already attached to another connection");
                connection.reject(&hello, -32010, &text).await;
            }
        };
        let before = Instant::now();
        let connected = tokio::select! {
            connected = connecting => connected,
            () = rejecting => unreachable!("it ends with the test"),
        };
        let error = connected.map(drop).unwrap_err();
        assert!(
            matches!(error, Error::Rejected { code: -32010, .. }),
            "{round_trip} ms: {error}"
        );
        assert!(before.elapsed() <= Duration::from_secs(11));
    }
}

#[tokio::test(start_paused = true)]
async fn events_of_older_connections_are_ignored() {
    let mut sim = Sim::new();
    let (remote, mut old) = sim.connect(full_server()).await;
    let process = started(&remote, &mut old, "p").await;
    old.close(1011, "").await;
    old.output("p", 1, b"late").await;
    // A connection that never becomes current, because its handshake times out.
    let mut silent = sim.accept().await;
    silent.expect_request("initialize").await;
    let (mut connection, _) = sim.resumed(full_server()).await;
    silent.output("p", 1, b"later").await;
    old.output("p", 1, b"latest").await;
    connection.output("p", 1, b"now").await;
    connection.exited("p", 2, 0).await;
    connection.closed("p", 3).await;
    assert_eq!(summarize(&process).await, ["1 now", "2 exit 0", "3 closed"]);
    assert_eq!(
        *remote.connection_state().borrow(),
        ConnectionState::Connected
    );
}

#[tokio::test(start_paused = true)]
async fn idle_connection_is_replaced() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    // The connection stays open but is silent, also after a ping.
    let (mut new, _) = sim.resumed(old_server()).await;
    let read = new.expect_request("process/read").await;
    new.respond(&read, crate::sim::page(&[], 1)).await;
    new.exited("p", 1, 0).await;
    new.closed("p", 2).await;
    assert_eq!(summarize(&process).await, ["1 exit 0", "2 closed"]);
    drop(connection);
}

#[tokio::test(start_paused = true)]
async fn overloaded_resume_is_repeated() {
    let mut sim = Sim::new();
    let (remote, connection) = sim.connect(old_server()).await;
    drop(connection);
    let mut connection = sim.accept().await;
    let hello = connection.expect_request("initialize").await;
    connection
        .reject(&hello, -32001, "Server overloaded; retry later.")
        .await;
    let hello = connection.expect_request("initialize").await;
    connection.respond(&hello, old_server()).await;
    connection.expect_notification("initialized").await;
    let mut state = remote.connection_state();
    soon(
        "the connection",
        state.wait_for(|now| *now == ConnectionState::Connected),
    )
    .await
    .unwrap();
}

#[tokio::test(start_paused = true)]
async fn session_of_another_client_can_be_resumed() {
    let mut sim = Sim::new();
    let options = RemoteOptions::default()
        .client_name("me")
        .session_label("mine")
        .lease(Lease::For(Duration::from_secs(9)))
        .resume(SESSION.to_owned())
        .takeover(true);
    assert!(!format!("{options:?}").contains("secret"));
    let dialer = sim.shared_dialer();
    let serving = async {
        let mut connection = sim.accept().await;
        let hello = connection.expect_request("initialize").await;
        assert_eq!(
            hello["params"],
            json!({"clientName": "me", "resumeSessionId": SESSION, "detachedTtlMs": 9000,
                   "takeover": true, "delivery": "acked"})
        );
        connection.respond(&hello, full_server()).await;
        connection.expect_notification("initialized").await;
        let read = connection.expect_request("process/read").await;
        assert_eq!(read["params"]["afterSeq"], 4);
        // Event 6 arrives before the response.
        connection.output("p", 6, b"six").await;
        connection
            .respond(&read, crate::sim::page(&[(5, "five")], 6))
            .await;
        connection.exited("p", 7, 0).await;
        connection.closed("p", 8).await;
        connection
    };
    let using = async {
        let remote = outpost_client::RemoteExecutor::with_dialer(dialer, options)
            .await
            .unwrap();
        assert_eq!(remote.session_id(), Some(SESSION));
        let process = remote.attach("p", 4).await.unwrap();
        assert_eq!(
            summarize(&process).await,
            ["5 five", "6 six", "7 exit 0", "8 closed"]
        );
    };
    tokio::join!(serving, using);
}
