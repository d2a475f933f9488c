//! Servers without extensions, and older versions.

use std::time::Duration;

use outpost_client::{Error, Executor as _, Signal, Start, Terminate};
use serde_json::json;

use crate::sim::{Sim, old_server, page, started, summarize};

#[tokio::test(start_paused = true)]
async fn missing_denial_is_read_once() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    connection.output("p", 1, b"no").await;
    connection
        .send(json!({"method": "process/exited", "params": {
            "processId": "p", "seq": 2, "exitCode": 1,
        }}))
        .await;
    connection.closed("p", 3).await;
    let read = connection.expect_request("process/read").await;
    assert_eq!(read["params"]["processId"], "p");
    let mut all = page(&[(1, "no")], 4);
    all["exited"] = json!(true);
    all["exitCode"] = json!(1);
    all["closed"] = json!(true);
    all["sandboxDenied"] = json!(true);
    connection.respond(&read, all).await;
    assert_eq!(
        summarize(&process).await,
        ["1 no", "2 denied 1", "3 closed"]
    );
    connection.expect_silence(Duration::from_secs(20)).await;
}

#[tokio::test(start_paused = true)]
async fn unknown_denial_is_false() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    connection
        .send(json!({"method": "process/exited", "params": {
            "processId": "p", "seq": 1, "exitCode": 0,
        }}))
        .await;
    connection.closed("p", 2).await;
    let read = connection.expect_request("process/read").await;
    connection
        .reject(&read, -32600, "unknown process id p")
        .await;
    assert_eq!(summarize(&process).await, ["1 exit 0", "2 closed"]);
}

#[tokio::test(start_paused = true)]
async fn unannounced_capabilities_are_not_used() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    let grace = Terminate::new().grace(Duration::from_secs(1));
    let start = || Start::new(["x"]).cwd("/");
    for (refused, missing) in [
        (process.resize(1, 1).await.unwrap_err(), "resize"),
        (process.close_stdin().await.unwrap_err(), "closeStdin"),
        (process.signal(Signal::Kill).await.unwrap_err(), "signals"),
        (
            process.terminate_with(grace).await.unwrap_err(),
            "terminateTree",
        ),
        (remote.processes().await.unwrap_err(), "processList"),
        (remote.sessions().await.unwrap_err(), "sessionList"),
        (
            remote.inspect(None, "p").network().await.unwrap_err(),
            "processNetwork",
        ),
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
            Error::Unsupported { capability } => assert_eq!(capability, missing),
            other => panic!("{other:?}"),
        }
    }
    connection.expect_silence(Duration::from_secs(20)).await;
    // Every server supports the interrupt.
    let signal = async {
        let request = connection.expect_request("process/signal").await;
        connection.respond(&request, json!({})).await;
    };
    let (signalled, ()) = tokio::join!(process.signal(Signal::Interrupt), signal);
    signalled.unwrap();
}

#[tokio::test(start_paused = true)]
async fn start_contains_only_known_fields() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let server = async {
        let request = connection.expect_request("process/start").await;
        connection.reject(&request, -32603, "no").await;
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
async fn working_directory_is_requested_once() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let server = async {
        let request = connection.expect_request("environment/info").await;
        let info = json!({"shell": {"name": "sh", "path": "/bin/sh"}, "cwd": "file:///srv"});
        connection.respond(&request, info).await;
        // The working directory is requested once.
        for cwd in ["file:///srv", "file:///srv/sub"] {
            let request = connection.expect_request("process/start").await;
            assert_eq!(request["params"]["cwd"], cwd);
            connection.reject(&request, -32603, "no").await;
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
async fn relative_directory_fails_without_a_working_directory() {
    for knows_the_question in [true, false] {
        let mut sim = Sim::new();
        let (remote, mut connection) = sim.connect(old_server()).await;
        let server = async {
            let request = connection.expect_request("environment/info").await;
            if knows_the_question {
                let info = json!({"shell": {"name": "sh", "path": "/bin/sh"}, "cwd": null});
                connection.respond(&request, info).await;
            } else {
                connection.reject(&request, -32601, "unknown method").await;
            }
        };
        let (started, ()) = tokio::join!(remote.start(Start::new(["x"])), server);
        assert!(matches!(started.unwrap_err(), Error::NoDirectory));
        let start = Start::new(["x"]).cwd("/srv").id("p");
        let (started, _) = tokio::join!(remote.start(start), connection.start());
        started.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_notifications_are_ignored() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    connection
        .send(json!({"method": "process/output", "params": {"processId": "p"}}))
        .await;
    connection
        .send(json!({"method": "process/exited", "params": [1]}))
        .await;
    connection.send(json!({"nothing": 1})).await;
    connection.send(json!({"id": 999, "result": {}})).await;
    connection
        .send(json!({"id": "x", "error": {"code": 1, "message": "m"}}))
        .await;
    connection
        .send(json!({"id": 4, "method": "client/ask"}))
        .await;
    let answer = connection.next().await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    connection.output("p", 1, b"").await;
    connection.exited("p", 2, 3).await;
    connection.exited("p", 3, 4).await;
    connection.closed("p", 4).await;
    connection.output("p", 5, b"behind the end").await;
    assert_eq!(summarize(&process).await, ["2 exit 3", "4 closed"]);
    let process = started(&remote, &mut connection, "q").await;
    connection.closed("q", 1).await;
    assert_eq!(summarize(&process).await, ["1 closed"]);
    assert_eq!(process.wait().await.unwrap().code, -1);
}
