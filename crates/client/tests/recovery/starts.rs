//! Starts that are dropped or whose response is lost.

use std::time::Duration;

use outpost_client::{Error, Executor as _, RemoteExecutor, Start};
use serde_json::{Value, json};

use crate::sim::{Sim, SimConnection, full_server, old_server, started, summarize};

#[tokio::test(start_paused = true)]
async fn start_in_flight_at_the_loss_is_terminated_first() {
    for initialize_result in [full_server(), old_server()] {
        let mut sim = Sim::new();
        let (remote, mut connection) = sim.connect(initialize_result.clone()).await;
        let other = started(&remote, &mut connection, "other").await;
        let server = async {
            let request = connection.expect_request("process/start").await;
            assert_eq!(request["params"]["processId"], "lost");
            drop(connection);
            let (mut connection, _) = sim.resumed(initialize_result.clone()).await;
            // The process was started.
            connection.output("lost", 1, b"hello").await;
            let end = connection.expect_request("process/terminate").await;
            assert_eq!(end["params"], json!({"processId": "lost"}));
            connection.respond(&end, json!({"running": true})).await;
            connection.exited("lost", 2, 137).await;
            connection.closed("lost", 3).await;
            connection
        };
        let start = Start::new(["x"]).cwd("/").id("lost");
        let (outcome, mut connection) = tokio::join!(remote.start(start), server);
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Disconnected { .. }), "{error}");
        if initialize_result == full_server() {
            connection.exited("other", 1, 0).await;
            connection.closed("other", 2).await;
            assert_eq!(summarize(&other).await, ["1 exit 0", "2 closed"]);
            // Both closes are acknowledged.
            let mut acked = [
                connection.expect_notification("process/ack").await,
                connection.expect_notification("process/ack").await,
            ];
            acked.sort_by_key(|ack| ack["seq"].as_u64());
            assert_eq!(acked[0], json!({"processId": "other", "seq": 2}));
            assert_eq!(acked[1], json!({"processId": "lost", "seq": 3}));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_start_is_terminated() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let request = dropped_start(&remote, &mut connection, Start::new(["x"]).cwd("/")).await;
    let end = connection.expect_request("process/terminate").await;
    assert_eq!(end["params"]["processId"], request["params"]["processId"]);
    connection.respond(&end, json!({"running": true})).await;
    connection
        .reject(&request, -32600, "process u start was cancelled")
        .await;
    connection.expect_silence(Duration::from_secs(30)).await;
}

#[tokio::test(start_paused = true)]
async fn dropped_start_with_chosen_id_is_terminated_after_its_response() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let build = || Start::new(["x"]).cwd("/").id("build");
    let request = dropped_start(&remote, &mut connection, build()).await;
    connection
        .reject(&request, -32600, "process build already exists")
        .await;
    // The existing process belongs to another client.
    connection.expect_silence(Duration::from_secs(30)).await;
    let request = dropped_start(&remote, &mut connection, build()).await;
    connection.expect_silence(Duration::from_secs(30)).await;
    connection
        .respond(&request, json!({"processId": "build"}))
        .await;
    let end = connection.expect_request("process/terminate").await;
    assert_eq!(end["params"]["processId"], "build");
}

#[tokio::test(start_paused = true)]
async fn unsent_start_is_not_terminated() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let mut state = remote.connection_state();
    connection.close(1011, "").await;
    drop(connection);
    let lost = state.wait_for(|now| *now == outpost_client::ConnectionState::Recovering);
    lost.await.unwrap();
    let start = remote.start(Start::new(["x"]).cwd("/").id("u"));
    let dropped = tokio::time::timeout(Duration::from_millis(1), start).await;
    assert!(dropped.is_err(), "there is no connection");
    let (mut connection, _) = sim.resumed(full_server()).await;
    connection.expect_silence(Duration::from_secs(30)).await;
}

/// Drops a start after the request was sent.
async fn dropped_start(
    remote: &RemoteExecutor,
    connection: &mut SimConnection,
    start: Start,
) -> Value {
    tokio::select! {
        _ = remote.start(start) => panic!("there is no response"),
        request = connection.expect_request("process/start") => request,
    }
}

#[tokio::test(start_paused = true)]
async fn process_dropped_while_disconnected_is_terminated_later() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    let mut state = remote.connection_state();
    drop(connection);
    let mut connection = sim.accept().await;
    state
        .wait_for(|now| *now == outpost_client::ConnectionState::Recovering)
        .await
        .unwrap();
    drop(process);
    let hello = connection.expect_request("initialize").await;
    connection.respond(&hello, full_server()).await;
    connection.expect_notification("initialized").await;
    let end = connection.expect_request("process/terminate").await;
    assert_eq!(end["params"]["processId"], "p");
    connection.respond(&end, json!({"running": true})).await;
    connection.exited("p", 1, 137).await;
    connection.closed("p", 2).await;
    assert_eq!(
        connection.expect_notification("process/ack").await,
        json!({"processId": "p", "seq": 2})
    );
}

#[tokio::test(start_paused = true)]
async fn events_may_precede_the_response() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let server = async {
        let request = connection.expect_request("process/start").await;
        connection.output("p", 1, b"early").await;
        connection.exited("p", 2, 0).await;
        connection.closed("p", 3).await;
        connection
            .respond(&request, json!({"processId": "p"}))
            .await;
    };
    let start = Start::new(["x"]).cwd("/").id("p");
    let (process, ()) = tokio::join!(remote.start(start), server);
    assert_eq!(
        summarize(&process.unwrap()).await,
        ["1 early", "2 exit 0", "3 closed"]
    );
}
