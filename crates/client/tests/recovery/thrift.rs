//! What isn't needed isn't asked for.

use std::time::Duration;

use serde_json::json;

use crate::sim::{Sim, capable, released, started, tale};

#[tokio::test(start_paused = true)]
async fn a_one_shot_command_costs_one_call() {
    for welcome in [capable(), released()] {
        let mut sim = Sim::new();
        let (remote, mut line) = sim.connect(welcome.clone()).await;
        let process = started(&remote, &mut line, "p").await;
        line.output("p", 1, b"hello").await;
        line.exited("p", 2, 0).await;
        line.closed("p", 3).await;
        assert_eq!(tale(&process).await, ["1 hello", "2 exit 0", "3 closed"]);
        assert_eq!(process.wait().await.unwrap().code, 0);
        drop(process);
        line.is_quiet_for(Duration::from_millis(900)).await;
        assert_eq!(line.asked, ["initialize", "initialized", "process/start"]);
        if welcome == capable() {
            // The close is acknowledged when there is nothing better to do.
            let ack = line.said("process/ack").await;
            assert_eq!(ack, json!({"processId": "p", "seq": 3}));
        }
        line.is_quiet_for(Duration::from_secs(20)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_place_is_said() {
    use outpost_client::Place as _;
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let process = started(&remote, &mut line, "p").await;
    process.detach();
    drop(process);
    let (closed, ()) = tokio::join!(remote.close(), line.hung_up());
    closed.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_with_its_place_is_ended_first() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let process = started(&remote, &mut line, "p").await;
    drop(remote);
    // A process keeps its connection.
    line.output("p", 1, b"x").await;
    let mut wake = process.wake();
    wake.wait_for(|last| *last == 1).await.unwrap();
    drop(process);
    let end = loop {
        let message = line.next().await;
        if message["method"] != "process/ack" {
            break message;
        }
    };
    assert_eq!(end["method"], "process/terminate");
    line.hung_up().await;
}
