//! Watches when the connection is lost.

use outpost_client::{Executor as _, FileChanges, FileErrorKind, WatchOptions};
use serde_json::{Value, json};

use crate::sim::{SESSION, Sim, SimConnection, old_server, soon};

const TREE: WatchOptions = WatchOptions { recursive: true };

/// The response to `initialize` of a server with watches.
fn watching_server() -> Value {
    json!({"sessionId": SESSION, "capabilities": {"fsWatch": true}})
}

/// Answers the request to watch, and returns its id.
async fn opened(connection: &mut SimConnection) -> Value {
    let request = connection.expect_request("fs/watch").await;
    assert_eq!(request["params"]["path"], "file:///d");
    assert_eq!(request["params"]["recursive"], true);
    connection
        .respond(&request, json!({"path": "file:///d"}))
        .await;
    request["params"]["watchId"].clone()
}

async fn changed(connection: &mut SimConnection, id: &Value, path: &str) {
    let params = json!({"watchId": id, "changedPaths": [path]});
    let notification = json!({"method": "fs/changed", "params": params});
    connection.send(notification).await;
}

fn only(path: &str) -> FileChanges {
    FileChanges {
        paths: vec![path.into()],
        ..FileChanges::default()
    }
}

#[tokio::test(start_paused = true)]
async fn watch_is_opened_again_and_may_have_missed_changes() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(watching_server()).await;
    let (watch, id) = tokio::join!(remote.watch("/d".as_ref(), TREE), opened(&mut connection));
    let mut watch = watch.unwrap();
    changed(&mut connection, &json!("unknown"), "file:///x").await;
    changed(&mut connection, &id, "file:///d/a%20b").await;
    assert_eq!(soon("changes", watch.next()).await.unwrap(), only("/d/a b"));
    drop(connection);
    let (mut connection, _) = sim.resumed(watching_server()).await;
    let id = opened(&mut connection).await;
    let changes = soon("the loss", watch.next()).await.unwrap();
    let missed = FileChanges {
        missed: true,
        ..FileChanges::default()
    };
    assert_eq!(changes, missed);
    changed(&mut connection, &id, "file:///d/f").await;
    assert_eq!(soon("changes", watch.next()).await.unwrap(), only("/d/f"));
    drop(watch);
    let request = connection.expect_request("fs/unwatch").await;
    assert_eq!(request["params"]["watchId"], id);
}

#[tokio::test(start_paused = true)]
async fn overloaded_server_is_asked_until_it_has_space() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(watching_server()).await;
    let (watch, _) = tokio::join!(remote.watch("/d".as_ref(), TREE), opened(&mut connection));
    let mut watch = watch.unwrap();
    drop(connection);
    let (mut connection, _) = sim.resumed(watching_server()).await;
    for _ in 0..3 {
        let request = connection.expect_request("fs/watch").await;
        connection.reject(&request, -32001, "busy").await;
    }
    opened(&mut connection).await;
    assert!(soon("the loss", watch.next()).await.unwrap().missed);
}

#[tokio::test(start_paused = true)]
async fn watch_that_is_refused_later_ends() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(watching_server()).await;
    let (watch, _) = tokio::join!(remote.watch("/d".as_ref(), TREE), opened(&mut connection));
    let mut watch = watch.unwrap();
    drop(connection);
    let (mut connection, _) = sim.resumed(watching_server()).await;
    let request = connection.expect_request("fs/watch").await;
    connection.reject(&request, -32603, "no more watches").await;
    let error = soon("the end", watch.next()).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot watch \"/d\": no more watches");
}

#[tokio::test(start_paused = true)]
async fn aborting_a_watch_request_sends_unwatch() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(watching_server()).await;
    let watching = remote.watch("/d".as_ref(), TREE);
    let watching = tokio::spawn(watching);
    let request = connection.expect_request("fs/watch").await;
    watching.abort();
    let end = connection.expect_request("fs/unwatch").await;
    assert_eq!(end["params"]["watchId"], request["params"]["watchId"]);
}

#[tokio::test(start_paused = true)]
async fn server_without_watches_is_not_asked() {
    let mut sim = Sim::new();
    let (remote, _connection) = sim.connect(old_server()).await;
    let error = remote.watch("/d".as_ref(), TREE).await.unwrap_err();
    assert_eq!(error.kind(), FileErrorKind::Unavailable);
    assert!(error.to_string().contains("fsWatch"), "{error}");
}
