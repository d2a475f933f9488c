//! Somebody attaches, and not alone, or not to the end.

use std::time::Duration;

use outpost_client::{Error, Place as _, Start};
use serde_json::json;

use crate::sim::{Sim, SimLine, brief, capable, page, released, soon, started};

async fn end(line: &mut SimLine, id: &str, seq: u64) {
    line.exited(id, seq, 0).await;
    line.closed(id, seq + 1).await;
}

#[tokio::test(start_paused = true)]
async fn who_stops_waiting_leaves_a_process_that_can_be_attached_to() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let read = tokio::select! {
        _ = remote.attach("p", 0) => panic!("nobody has answered"),
        read = line.asked_for("process/read") => read,
    };
    let serving = line.answer(&read, page(&[(1, "one")], 2));
    let (process, ()) = tokio::join!(remote.attach("p", 0), serving);
    let process = process.unwrap();
    let mut events = process.events();
    assert_eq!(brief(soon("one", events.next()).await.unwrap()), "1 one");
    line.output("p", 2, b"two").await;
    assert_eq!(brief(soon("two", events.next()).await.unwrap()), "2 two");
}

#[tokio::test(start_paused = true)]
async fn who_stopped_waiting_holds_nothing_back() {
    let mut sim = Sim::new();
    let mut options = outpost_client::RemoteOptions::default();
    options.limits.window_bytes = 8;
    options.limits.retain_bytes = 8;
    let (remote, mut line) = sim.connect_with(options, capable()).await;
    let read = tokio::select! {
        _ = remote.attach("p", 0) => panic!("nobody has answered"),
        read = line.asked_for("process/read") => read,
    };
    line.answer(&read, page(&[(1, "more than a window")], 2))
        .await;
    assert_eq!(
        line.said("process/ack").await,
        json!({"processId": "p", "seq": 1})
    );
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_for_everybody_who_asked() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let server = async {
        let read = line.asked_for("process/read").await;
        line.refuse(&read, -32600, "unknown process id nope").await;
        line.is_quiet_for(Duration::from_secs(30)).await;
    };
    let (first, second, ()) =
        tokio::join!(remote.attach("nope", 0), remote.attach("nope", 0), server);
    for refused in [first, second] {
        let error = refused.unwrap_err();
        assert_eq!(error.to_string(), "unknown process id nope (-32600)");
    }
}

#[tokio::test(start_paused = true)]
async fn two_who_attach_hear_the_same() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let server = async {
        let read = line.asked_for("process/read").await;
        line.answer(&read, page(&[(3, "three")], 4)).await;
    };
    let (first, second, ()) = tokio::join!(remote.attach("p", 0), remote.attach("p", 0), server);
    let (mut first, mut second) = (first.unwrap().events(), second.unwrap().events());
    end(&mut line, "p", 4).await;
    for heard in ["3 three", "4 exit 0", "5 closed"] {
        for events in [&mut first, &mut second] {
            assert_eq!(brief(soon(heard, events.next()).await.unwrap()), heard);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_attaches_to_a_start_waits_for_its_answer() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let start = || remote.start(Start::new(["x"]).cwd("/").id("p"));
    let server = async {
        let request = line.asked_for("process/start").await;
        line.refuse(&request, -32600, "no").await;
    };
    let (_, attached, ()) = tokio::join!(start(), remote.attach("p", 0), server);
    assert!(matches!(attached, Err(Error::UnknownProcess { .. })));
    let (process, attached, _) = tokio::join!(start(), remote.attach("p", 0), line.start());
    drop(process.unwrap());
    drop(attached.unwrap());
    // It is its starter's, and ends with it.
    let end = line.asked_for("process/terminate").await;
    assert_eq!(end["params"]["processId"], "p");
}

#[tokio::test(start_paused = true)]
async fn what_was_only_attached_to_is_not_ended_for_a_hole() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let server = async {
        let read = line.asked_for("process/read").await;
        line.answer(&read, page(&[(1, "one")], 2)).await;
    };
    let (attached, ()) = tokio::join!(remote.attach("attached", 0), server);
    let attached = attached.unwrap();
    let detached = started(&remote, &mut line, "detached").await;
    detached.detach();
    for (process, next) in [(&attached, 9), (&detached, 9)] {
        line.output(process.id(), next, b"late").await;
        let read = line.asked_for("process/read").await;
        line.answer(&read, page(&[(next, "late")], next + 1)).await;
        let waited = soon("the failure", process.wait()).await;
        assert!(matches!(waited, Err(Error::Gap { .. })), "{waited:?}");
    }
    line.is_quiet_for(Duration::from_secs(30)).await;
}
