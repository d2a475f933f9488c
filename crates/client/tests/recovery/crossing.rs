//! What happens while a connection is being brought back.

use outpost_client::Standing;
use serde_json::json;

use crate::sim::{Sim, capable, soon, started, tale};

#[tokio::test(start_paused = true)]
async fn what_is_dropped_while_others_are_being_ended_is_ended_too() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let first = started(&remote, &mut line, "first").await;
    let second = started(&remote, &mut line, "second").await;
    let mut standing = remote.standing();
    drop(line);
    let lost = standing.wait_for(|now| *now == Standing::Recovering);
    soon("the loss", lost).await.unwrap();
    drop(first);
    let (mut line, _) = sim.resumed(capable()).await;
    let end = line.asked_for("process/terminate").await;
    assert_eq!(end["params"]["processId"], "first");
    drop(second);
    line.answer(&end, json!({"running": true})).await;
    let end = line.asked_for("process/terminate").await;
    assert_eq!(end["params"]["processId"], "second");
}

#[tokio::test(start_paused = true)]
async fn a_close_that_crosses_the_handshake_is_acknowledged() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let process = started(&remote, &mut line, "p").await;
    drop(line);
    let mut line = sim.accept().await;
    let hello = line.asked_for("initialize").await;
    assert_eq!(hello["params"]["resumeFrom"], json!({"p": 0}));
    line.exited("p", 1, 0).await;
    line.closed("p", 2).await;
    line.answer(&hello, capable()).await;
    line.said("initialized").await;
    assert_eq!(tale(&process).await, ["1 exit 0", "2 closed"]);
    assert_eq!(
        line.said("process/ack").await,
        json!({"processId": "p", "seq": 2})
    );
}
