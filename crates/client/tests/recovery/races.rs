//! Events during a reconnect.

use outpost_client::ConnectionState;
use serde_json::json;

use crate::sim::{Sim, full_server, soon, started, summarize};

#[tokio::test(start_paused = true)]
async fn process_dropped_during_catch_up_is_terminated() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let first = started(&remote, &mut connection, "first").await;
    let second = started(&remote, &mut connection, "second").await;
    let mut state = remote.connection_state();
    drop(connection);
    let lost = state.wait_for(|now| *now == ConnectionState::Recovering);
    soon("the loss", lost).await.unwrap();
    drop(first);
    let (mut connection, _) = sim.resumed(full_server()).await;
    let end = connection.expect_request("process/terminate").await;
    assert_eq!(end["params"]["processId"], "first");
    drop(second);
    connection.respond(&end, json!({"running": true})).await;
    let end = connection.expect_request("process/terminate").await;
    assert_eq!(end["params"]["processId"], "second");
}

#[tokio::test(start_paused = true)]
async fn close_during_the_handshake_is_acknowledged() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    drop(connection);
    let mut connection = sim.accept().await;
    let hello = connection.expect_request("initialize").await;
    assert_eq!(hello["params"]["resumeFrom"], json!({"p": 0}));
    connection.exited("p", 1, 0).await;
    connection.closed("p", 2).await;
    connection.respond(&hello, full_server()).await;
    connection.expect_notification("initialized").await;
    assert_eq!(summarize(&process).await, ["1 exit 0", "2 closed"]);
    assert_eq!(
        connection.expect_notification("process/ack").await,
        json!({"processId": "p", "seq": 2})
    );
}
