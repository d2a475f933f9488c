//! Servers that leave out what goes beyond the released ones, or what they
//! didn't know yet.

use std::time::Duration;

use outpost_client::{Error, Place as _, SignalName, Start, Terminate};
use serde_json::json;

use crate::sim::{Sim, page, released, started, tale};

#[tokio::test(start_paused = true)]
async fn a_denial_that_is_left_out_is_asked_for_exactly_once() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let process = started(&remote, &mut line, "p").await;
    line.output("p", 1, b"no").await;
    line.send(json!({"method": "process/exited", "params": {
        "processId": "p", "seq": 2, "exitCode": 1,
    }}))
    .await;
    line.closed("p", 3).await;
    let read = line.asked_for("process/read").await;
    assert_eq!(read["params"]["processId"], "p");
    let mut all = page(&[(1, "no")], 4);
    all["exited"] = json!(true);
    all["exitCode"] = json!(1);
    all["closed"] = json!(true);
    all["sandboxDenied"] = json!(true);
    line.answer(&read, all).await;
    assert_eq!(tale(&process).await, ["1 no", "2 denied 1", "3 closed"]);
    line.is_quiet_for(Duration::from_secs(20)).await;
}

#[tokio::test(start_paused = true)]
async fn a_denial_that_nobody_knows_is_none() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let process = started(&remote, &mut line, "p").await;
    line.send(json!({"method": "process/exited", "params": {
        "processId": "p", "seq": 1, "exitCode": 0,
    }}))
    .await;
    line.closed("p", 2).await;
    let read = line.asked_for("process/read").await;
    line.refuse(&read, -32600, "unknown process id p").await;
    assert_eq!(tale(&process).await, ["1 exit 0", "2 closed"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_announced_is_not_asked_for() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let process = started(&remote, &mut line, "p").await;
    let grace = Terminate {
        grace: Some(Duration::from_secs(1)),
        tree: false,
    };
    let start = || Start::new(["x"]).cwd("/");
    for (refused, missing) in [
        (process.resize(1, 1).await.unwrap_err(), "resize"),
        (process.close_stdin().await.unwrap_err(), "closeStdin"),
        (
            process.signal(SignalName::Kill).await.unwrap_err(),
            "signals",
        ),
        (
            process.terminate_with(grace).await.unwrap_err(),
            "terminateTree",
        ),
        (remote.processes().await.unwrap_err(), "processList"),
        (remote.sessions().await.unwrap_err(), "sessionList"),
        (
            remote.start(start().size(1, 1)).await.unwrap_err(),
            "resize",
        ),
        (
            remote
                .start(start().timeout(Duration::from_secs(1)))
                .await
                .unwrap_err(),
            "timeouts",
        ),
    ] {
        match refused {
            Error::NotAnnounced { capability } => assert_eq!(capability, missing),
            other => panic!("{other:?}"),
        }
    }
    line.is_quiet_for(Duration::from_secs(20)).await;
    // The interrupt is what every server knows.
    let signal = async {
        let request = line.asked_for("process/signal").await;
        line.answer(&request, json!({})).await;
    };
    let (signalled, ()) = tokio::join!(process.signal(SignalName::Interrupt), signal);
    signalled.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_start_holds_nothing_that_an_older_server_does_not_know() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let server = async {
        let request = line.asked_for("process/start").await;
        line.refuse(&request, -32603, "no").await;
        request["params"].clone()
    };
    let start = Start::new(["x", "y"]).cwd("/a b").id("p").env("A", "b");
    let (started, params) = tokio::join!(remote.start(start), server);
    assert!(matches!(
        started.unwrap_err(),
        Error::StartFailed { code: -32603, .. }
    ));
    assert_eq!(
        params,
        json!({"processId": "p", "argv": ["x", "y"], "cwd": "file:///a%20b", "env": {"A": "b"},
               "envPolicy": null, "tty": false, "pipeStdin": false, "arg0": null, "sandbox": null,
               "enforceManagedNetwork": false, "managedNetwork": null})
    );
}

#[tokio::test(start_paused = true)]
async fn where_a_process_starts_is_asked_for_if_nobody_said() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let server = async {
        let request = line.asked_for("environment/info").await;
        let info = json!({"shell": {"name": "sh", "path": "/bin/sh"}, "cwd": "file:///srv"});
        line.answer(&request, info).await;
        // What is known isn't asked for again.
        for cwd in ["file:///srv", "file:///srv/sub"] {
            let request = line.asked_for("process/start").await;
            assert_eq!(request["params"]["cwd"], cwd);
            line.refuse(&request, -32603, "no").await;
        }
    };
    let starting = async {
        remote.start(Start::new(["x"])).await.unwrap_err();
        let below = Start::new(["x"]).cwd("sub");
        remote.start(below).await.unwrap_err();
    };
    tokio::join!(starting, server);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_know_where_it_is_has_to_be_told() {
    for knows_the_question in [true, false] {
        let mut sim = Sim::new();
        let (remote, mut line) = sim.connect(released()).await;
        let server = async {
            let request = line.asked_for("environment/info").await;
            if knows_the_question {
                let info = json!({"shell": {"name": "sh", "path": "/bin/sh"}, "cwd": null});
                line.answer(&request, info).await;
            } else {
                line.refuse(&request, -32601, "unknown method").await;
            }
        };
        let (started, ()) = tokio::join!(remote.start(Start::new(["x"])), server);
        assert!(matches!(started.unwrap_err(), Error::NoDirectory));
        let start = Start::new(["x"]).cwd("/srv").id("p");
        let (started, _) = tokio::join!(remote.start(start), line.start());
        started.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn nonsense_about_a_process_breaks_nothing() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let process = started(&remote, &mut line, "p").await;
    line.send(json!({"method": "process/output", "params": {"processId": "p"}}))
        .await;
    line.send(json!({"method": "process/exited", "params": [1]}))
        .await;
    line.send(json!({"nothing": 1})).await;
    line.send(json!({"id": 999, "result": {}})).await;
    line.send(json!({"id": "x", "error": {"code": 1, "message": "m"}}))
        .await;
    line.send(json!({"id": 4, "method": "client/ask"})).await;
    let answer = line.next().await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    line.output("p", 1, b"").await;
    line.exited("p", 2, 3).await;
    line.exited("p", 3, 4).await;
    line.closed("p", 4).await;
    line.output("p", 5, b"behind the end").await;
    assert_eq!(tale(&process).await, ["2 exit 3", "4 closed"]);
    let process = started(&remote, &mut line, "q").await;
    line.closed("q", 1).await;
    assert_eq!(tale(&process).await, ["1 closed"]);
    assert_eq!(process.wait().await.unwrap().code, -1);
}
