//! The connection comes back.

use std::{sync::atomic::Ordering, time::Duration};

use outpost_client::{Error, Lease, Place as _, RemoteOptions, SignalName, Standing};
use serde_json::json;
use tokio::time::Instant;

use crate::sim::{SESSION, Sim, capable, released, soon, started, tale};

#[tokio::test(start_paused = true)]
async fn a_lost_answer_ends_its_call_and_only_writes_are_repeated() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let process = started(&remote, &mut line, "p").await;
    let cut = async {
        let (mut signals, mut writes) = (0, Vec::new());
        while signals == 0 || writes.is_empty() {
            let request = line.next().await;
            match request["method"].as_str() {
                Some("process/signal") => signals += 1,
                Some("process/write") => writes.push(request["params"].clone()),
                other => panic!("{other:?}"),
            }
        }
        drop(line);
        let (mut line, _) = sim.resumed(capable()).await;
        let again = line.asked_for("process/write").await;
        assert_eq!(
            again["params"], writes[0],
            "the same write id, the same bytes"
        );
        line.answer(&again, json!({"status": "accepted"})).await;
        line.is_quiet_for(Duration::from_secs(5)).await;
        line
    };
    let (signalled, written, _line) = tokio::join!(
        process.signal(SignalName::Interrupt),
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
async fn calls_wait_while_it_recovers_and_then_go_on() {
    let mut sim = Sim::new();
    let (remote, line) = sim.connect(capable()).await;
    let mut standing = remote.standing();
    sim.dialer().down.store(true, Ordering::SeqCst);
    drop(line);
    soon(
        "the loss",
        standing.wait_for(|now| *now == Standing::Recovering),
    )
    .await
    .unwrap();
    let call = remote.processes();
    let back = async {
        // sleep: the time in which nobody answers
        tokio::time::sleep(Duration::from_secs(10)).await;
        sim.dialer().down.store(false, Ordering::SeqCst);
        let (mut line, params) = sim.resumed(capable()).await;
        assert_eq!(params["delivery"], "acked");
        let list = line.asked_for("process/list").await;
        line.answer(&list, json!({"processes": []})).await;
        line
    };
    let (listed, _line) = tokio::join!(call, back);
    assert!(listed.unwrap().is_empty());
    assert_eq!(*standing.borrow(), Standing::Connected);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_still_attached_is_asked_for_again_on_the_same_connection() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let process = started(&remote, &mut line, "p").await;
    drop(line);
    let mut line = sim.accept().await;
    let before = Instant::now();
    for _ in 0..20 {
        let hello = line.asked_for("initialize").await;
        let words = format!("session {SESSION} is already attached to another connection");
        line.refuse(&hello, -32010, &words).await;
    }
    let hello = line.asked_for("initialize").await;
    line.answer(&hello, capable()).await;
    line.said("initialized").await;
    assert!(before.elapsed() > Duration::from_secs(2), "not in a hurry");
    assert!(before.elapsed() < Duration::from_secs(20));
    assert_eq!(sim.dialer().dials.load(Ordering::SeqCst), 2);
    line.exited("p", 1, 0).await;
    line.closed("p", 2).await;
    assert_eq!(tale(&process).await, ["1 exit 0", "2 closed"]);
}

#[tokio::test(start_paused = true)]
async fn late_events_of_an_older_connection_change_nothing() {
    let mut sim = Sim::new();
    let (remote, mut old) = sim.connect(capable()).await;
    let process = started(&remote, &mut old, "p").await;
    old.close(1001).await;
    old.output("p", 1, b"late").await;
    // One more that never becomes the current one: it isn't answered in time.
    let mut silent = sim.accept().await;
    silent.asked_for("initialize").await;
    let (mut line, _) = sim.resumed(capable()).await;
    silent.output("p", 1, b"later").await;
    old.output("p", 1, b"latest").await;
    line.output("p", 1, b"now").await;
    line.exited("p", 2, 0).await;
    line.closed("p", 3).await;
    assert_eq!(tale(&process).await, ["1 now", "2 exit 0", "3 closed"]);
    assert_eq!(*remote.standing().borrow(), Standing::Connected);
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_lost() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let process = started(&remote, &mut line, "p").await;
    // Nothing comes, not even an answer to a ping. The line stays open.
    let (mut new, _) = sim.resumed(released()).await;
    let read = new.asked_for("process/read").await;
    new.answer(&read, crate::sim::page(&[], 1)).await;
    new.exited("p", 1, 0).await;
    new.closed("p", 2).await;
    assert_eq!(tale(&process).await, ["1 exit 0", "2 closed"]);
    drop(line);
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_is_tried_again() {
    let mut sim = Sim::new();
    let (remote, line) = sim.connect(released()).await;
    drop(line);
    let mut line = sim.accept().await;
    let hello = line.asked_for("initialize").await;
    line.refuse(&hello, -32001, "Server overloaded; retry later.")
        .await;
    let hello = line.asked_for("initialize").await;
    line.answer(&hello, released()).await;
    line.said("initialized").await;
    let mut standing = remote.standing();
    soon(
        "the connection",
        standing.wait_for(|now| *now == Standing::Connected),
    )
    .await
    .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_session_of_somebody_else_can_be_taken_up() {
    let mut sim = Sim::new();
    let options = RemoteOptions {
        client_name: "me".to_owned(),
        session_label: Some("mine".to_owned()),
        lease: Lease::For(Duration::from_secs(9)),
        resume: Some(SESSION.to_owned()),
        takeover: true,
        ..RemoteOptions::default()
    };
    assert!(!format!("{options:?}").contains("secret"));
    let dialer = sim.shared_dialer();
    let serving = async {
        let mut line = sim.accept().await;
        let hello = line.asked_for("initialize").await;
        assert_eq!(
            hello["params"],
            json!({"clientName": "me", "resumeSessionId": SESSION, "detachedTtlMs": 9000,
                   "takeover": true, "delivery": "acked"})
        );
        line.answer(&hello, capable()).await;
        line.said("initialized").await;
        let read = line.asked_for("process/read").await;
        assert_eq!(read["params"]["afterSeq"], 4);
        // Six is on its way already.
        line.output("p", 6, b"six").await;
        line.answer(&read, crate::sim::page(&[(5, "five")], 6))
            .await;
        line.exited("p", 7, 0).await;
        line.closed("p", 8).await;
        line
    };
    let using = async {
        let remote = outpost_client::Remote::over(dialer, options).await.unwrap();
        assert_eq!(remote.session_id(), Some(SESSION));
        let process = remote.attach("p", 4).await.unwrap();
        assert_eq!(
            tale(&process).await,
            ["5 five", "6 six", "7 exit 0", "8 closed"]
        );
    };
    tokio::join!(serving, using);
}
