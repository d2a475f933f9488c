//! The client sends no unnecessary requests.

use std::time::Duration;

use serde_json::json;

use crate::sim::{Sim, full_server, old_server, started, summarize};

#[tokio::test(start_paused = true)]
async fn command_costs_one_request() {
    for initialize_result in [full_server(), old_server()] {
        let mut sim = Sim::new();
        let (remote, mut connection) = sim.connect(initialize_result.clone()).await;
        let process = started(&remote, &mut connection, "p").await;
        connection.output("p", 1, b"hello").await;
        connection.exited("p", 2, 0).await;
        connection.closed("p", 3).await;
        assert_eq!(
            summarize(&process).await,
            ["1 hello", "2 exit 0", "3 closed"]
        );
        assert_eq!(process.wait().await.unwrap().code, 0);
        drop(process);
        connection.expect_silence(Duration::from_millis(900)).await;
        assert_eq!(
            connection.methods,
            ["initialize", "initialized", "process/start"]
        );
        if initialize_result == full_server() {
            // The close is acknowledged after a delay.
            let ack = connection.expect_notification("process/ack").await;
            assert_eq!(ack, json!({"processId": "p", "seq": 3}));
        }
        connection.expect_silence(Duration::from_secs(20)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn close_closes_the_connection() {
    use outpost_client::Executor as _;
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    process.detach();
    drop(process);
    let (closed, ()) = tokio::join!(remote.close(), connection.wait_closed());
    closed.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dropped_process_is_terminated_before_disconnecting() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    drop(remote);
    // A process handle keeps the connection open.
    connection.output("p", 1, b"x").await;
    let mut wake = process.wake();
    wake.wait_for(|last| *last == 1).await.unwrap();
    drop(process);
    let end = loop {
        let message = connection.next().await;
        if message["method"] != "process/ack" {
            break message;
        }
    };
    assert_eq!(end["method"], "process/terminate");
    connection.wait_closed().await;
}
