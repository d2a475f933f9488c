//! Attaching concurrently, and attaches that are dropped.

use std::time::Duration;

use outpost_client::{Error, Executor as _, Start};
use serde_json::json;

use crate::sim::{Sim, SimConnection, full_server, old_server, page, soon, started, summary};

async fn end(connection: &mut SimConnection, id: &str, seq: u64) {
    connection.exited(id, seq, 0).await;
    connection.closed(id, seq + 1).await;
}

#[tokio::test(start_paused = true)]
async fn dropped_attach_can_be_repeated() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let read = tokio::select! {
        _ = remote.attach("p", 0) => panic!("there is no response"),
        read = connection.expect_request("process/read") => read,
    };
    let serving = connection.respond(&read, page(&[(1, "one")], 2));
    let (process, ()) = tokio::join!(remote.attach("p", 0), serving);
    let process = process.unwrap();
    let mut events = process.events();
    assert_eq!(summary(soon("one", events.next()).await.unwrap()), "1 one");
    connection.output("p", 2, b"two").await;
    assert_eq!(summary(soon("two", events.next()).await.unwrap()), "2 two");
}

#[tokio::test(start_paused = true)]
async fn dropped_attach_does_not_hold_the_process_back() {
    let mut sim = Sim::new();
    let mut options = outpost_client::RemoteOptions::default();
    options.limits.window_bytes = 8;
    options.limits.retain_bytes = 8;
    let (remote, mut connection) = sim.connect_with(options, full_server()).await;
    let read = tokio::select! {
        _ = remote.attach("p", 0) => panic!("there is no response"),
        read = connection.expect_request("process/read") => read,
    };
    connection
        .respond(&read, page(&[(1, "more than a window")], 2))
        .await;
    assert_eq!(
        connection.expect_notification("process/ack").await,
        json!({"processId": "p", "seq": 1})
    );
}

#[tokio::test(start_paused = true)]
async fn rejection_reaches_every_attaching_caller() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let server = async {
        let read = connection.expect_request("process/read").await;
        connection
            .reject(&read, -32600, "unknown process id nope")
            .await;
        connection.expect_silence(Duration::from_secs(30)).await;
    };
    let (first, second, ()) =
        tokio::join!(remote.attach("nope", 0), remote.attach("nope", 0), server);
    for refused in [first, second] {
        let error = refused.unwrap_err();
        assert_eq!(error.to_string(), "unknown process id nope (-32600)");
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_attaches_share_one_read() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let server = async {
        let read = connection.expect_request("process/read").await;
        connection.respond(&read, page(&[(3, "three")], 4)).await;
    };
    let (first, second, ()) = tokio::join!(remote.attach("p", 0), remote.attach("p", 0), server);
    let (mut first, mut second) = (first.unwrap().events(), second.unwrap().events());
    end(&mut connection, "p", 4).await;
    for heard in ["3 three", "4 exit 0", "5 closed"] {
        for events in [&mut first, &mut second] {
            assert_eq!(summary(soon(heard, events.next()).await.unwrap()), heard);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn attach_to_a_pending_start_waits_for_its_response() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let start = || remote.start(Start::new(["x"]).cwd("/").id("p"));
    let server = async {
        let request = connection.expect_request("process/start").await;
        connection.reject(&request, -32600, "no").await;
    };
    let (_, attached, ()) = tokio::join!(start(), remote.attach("p", 0), server);
    assert!(matches!(attached, Err(Error::UnknownProcess { .. })));
    let (process, attached, _) = tokio::join!(start(), remote.attach("p", 0), connection.start());
    drop(process.unwrap());
    drop(attached.unwrap());
    // The process ends with the handle of its starter.
    let end = connection.expect_request("process/terminate").await;
    assert_eq!(end["params"]["processId"], "p");
}

#[tokio::test(start_paused = true)]
async fn lost_output_does_not_terminate_attached_processes() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let server = async {
        let read = connection.expect_request("process/read").await;
        connection.respond(&read, page(&[(1, "one")], 2)).await;
    };
    let (attached, ()) = tokio::join!(remote.attach("attached", 0), server);
    let attached = attached.unwrap();
    let detached = started(&remote, &mut connection, "detached").await;
    detached.detach();
    for (process, next) in [(&attached, 9), (&detached, 9)] {
        connection.output(process.id(), next, b"late").await;
        let read = connection.expect_request("process/read").await;
        connection
            .respond(&read, page(&[(next, "late")], next + 1))
            .await;
        let waited = soon("the failure", process.wait()).await;
        assert!(matches!(waited, Err(Error::Gap { .. })), "{waited:?}");
    }
    connection.expect_silence(Duration::from_secs(30)).await;
}
