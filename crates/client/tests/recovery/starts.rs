//! A start whose fate is unknown.

use std::time::Duration;

use outpost_client::{Error, Place as _, Remote, Start};
use serde_json::{Value, json};

use crate::sim::{Sim, SimLine, capable, released, started, tale};

#[tokio::test(start_paused = true)]
async fn a_start_in_flight_at_the_cut_is_cleaned_up_before_anything_else() {
    for welcome in [capable(), released()] {
        let mut sim = Sim::new();
        let (remote, mut line) = sim.connect(welcome.clone()).await;
        let other = started(&remote, &mut line, "other").await;
        let server = async {
            let request = line.asked_for("process/start").await;
            assert_eq!(request["params"]["processId"], "lost");
            drop(line);
            let (mut line, _) = sim.resumed(welcome.clone()).await;
            // It exists, as it turns out.
            line.output("lost", 1, b"hello").await;
            let end = line.asked_for("process/terminate").await;
            assert_eq!(end["params"], json!({"processId": "lost"}));
            line.answer(&end, json!({"running": true})).await;
            line.exited("lost", 2, 137).await;
            line.closed("lost", 3).await;
            line
        };
        let start = Start::new(["x"]).cwd("/").id("lost");
        let (outcome, mut line) = tokio::join!(remote.start(start), server);
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Disconnected { .. }), "{error}");
        if welcome == capable() {
            line.exited("other", 1, 0).await;
            line.closed("other", 2).await;
            assert_eq!(tale(&other).await, ["1 exit 0", "2 closed"]);
            // Its place is given back, together with the other one's.
            let mut acked = [
                line.said("process/ack").await,
                line.said("process/ack").await,
            ];
            acked.sort_by_key(|ack| ack["seq"].as_u64());
            assert_eq!(acked[0], json!({"processId": "other", "seq": 2}));
            assert_eq!(acked[1], json!({"processId": "lost", "seq": 3}));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_nobody_waits_for_is_cancelled() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let request = dropped_start(&remote, &mut line, Start::new(["x"]).cwd("/")).await;
    let end = line.asked_for("process/terminate").await;
    assert_eq!(end["params"]["processId"], request["params"]["processId"]);
    line.answer(&end, json!({"running": true})).await;
    line.refuse(&request, -32600, "process u start was cancelled")
        .await;
    line.is_quiet_for(Duration::from_secs(30)).await;
}

#[tokio::test(start_paused = true)]
async fn a_chosen_name_is_ended_once_it_is_known_to_be_this_start_s() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let build = || Start::new(["x"]).cwd("/").id("build");
    let request = dropped_start(&remote, &mut line, build()).await;
    line.refuse(&request, -32600, "process build already exists")
        .await;
    // The one that has the name is somebody's.
    line.is_quiet_for(Duration::from_secs(30)).await;
    let request = dropped_start(&remote, &mut line, build()).await;
    line.is_quiet_for(Duration::from_secs(30)).await;
    line.answer(&request, json!({"processId": "build"})).await;
    let end = line.asked_for("process/terminate").await;
    assert_eq!(end["params"]["processId"], "build");
}

#[tokio::test(start_paused = true)]
async fn a_start_that_was_never_sent_is_not_undone() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let mut standing = remote.standing();
    line.close(1001).await;
    drop(line);
    let lost = standing.wait_for(|now| *now == outpost_client::Standing::Recovering);
    lost.await.unwrap();
    let start = remote.start(Start::new(["x"]).cwd("/").id("u"));
    let dropped = tokio::time::timeout(Duration::from_millis(1), start).await;
    assert!(dropped.is_err(), "there is no connection");
    let (mut line, _) = sim.resumed(capable()).await;
    line.is_quiet_for(Duration::from_secs(30)).await;
}

/// A start that is given up once the server was asked.
async fn dropped_start(remote: &Remote, line: &mut SimLine, start: Start) -> Value {
    tokio::select! {
        _ = remote.start(start) => panic!("nobody has answered"),
        request = line.asked_for("process/start") => request,
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_dropped_while_nobody_was_connected_is_ended_afterwards() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let process = started(&remote, &mut line, "p").await;
    let mut standing = remote.standing();
    drop(line);
    let mut line = sim.accept().await;
    standing
        .wait_for(|now| *now == outpost_client::Standing::Recovering)
        .await
        .unwrap();
    drop(process);
    let hello = line.asked_for("initialize").await;
    line.answer(&hello, capable()).await;
    line.said("initialized").await;
    let end = line.asked_for("process/terminate").await;
    assert_eq!(end["params"]["processId"], "p");
    line.answer(&end, json!({"running": true})).await;
    line.exited("p", 1, 137).await;
    line.closed("p", 2).await;
    assert_eq!(
        line.said("process/ack").await,
        json!({"processId": "p", "seq": 2})
    );
}

#[tokio::test(start_paused = true)]
async fn events_may_come_before_the_answer() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let server = async {
        let request = line.asked_for("process/start").await;
        line.output("p", 1, b"early").await;
        line.exited("p", 2, 0).await;
        line.closed("p", 3).await;
        line.answer(&request, json!({"processId": "p"})).await;
    };
    let start = Start::new(["x"]).cwd("/").id("p");
    let (process, ()) = tokio::join!(remote.start(start), server);
    assert_eq!(
        tale(&process.unwrap()).await,
        ["1 early", "2 exit 0", "3 closed"]
    );
}
