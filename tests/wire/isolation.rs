//! Tests that connections are isolated from each other.

use outpost_testkit::sh;
use serde_json::json;

use crate::outpost;

#[tokio::test]
async fn request_ids_are_per_connection() {
    let server = outpost().start().await;
    let (one, other) = (server.client().await, server.client().await);
    for client in [&one, &other] {
        client.start(sh("p", "read x").stdin()).await;
    }
    let wait = json!({"processId": "p", "waitMs": 20_000});
    one.send(&json!({"id": 77, "method": "process/read", "params": wait}))
        .await;
    other
        .send(&json!({"id": 77, "method": "environment/status"}))
        .await;
    assert_eq!(other.response(77).await, Ok(json!({"status": "ready"})));
    assert!(!one.has_response(77));
    one.write("p", "x\n", "w").await;
    assert_eq!(
        one.response(77).await.map(|read| read["exitCode"].clone()),
        Ok(json!(0))
    );
    assert_eq!(other.received().len(), 3, "initialize, start, status");
}

#[tokio::test]
async fn silent_connection_receives_nothing() {
    let server = outpost().start().await;
    let silent = server.connect().await;
    let busy = server.client().await;
    busy.run(sh("p", "echo out; echo err >&2")).await;
    busy.send_text("garbage").await;
    busy.error_without_id(0).await;
    silent.handshake().await;
    let first = silent.received();
    assert_eq!(first.len(), 1, "{first:?}");
}

#[tokio::test]
async fn process_ids_are_per_session() {
    let server = outpost().start().await;
    let (one, other) = (server.client().await, server.client().await);
    one.start(sh("same", "read x; echo one $x").stdin()).await;
    other
        .start(sh("same", "read x; echo other $x").stdin())
        .await;
    one.write("same", "1\n", "w").await;
    other.write("same", "2\n", "w").await;
    assert_eq!(one.closed("same").await.text(), "one 1\n");
    assert_eq!(other.closed("same").await.text(), "other 2\n");
}

#[tokio::test]
async fn processes_are_invisible_to_other_sessions() {
    let server = outpost().start().await;
    let (owner, other) = (server.client().await, server.client().await);
    owner.start(sh("mine", "read x; echo got $x").stdin()).await;

    let error = other
        .call_fails("process/read", json!({"processId": "mine"}))
        .await;
    assert_eq!(error.parts(), (-32600, "unknown process id mine"));
    assert_eq!(other.write("mine", "theirs\n", "w").await, "unknownProcess");
    other.signal("mine", "kill").await;
    assert!(!other.terminate("mine").await);
    assert_eq!(other.listed("mine").await, None);

    owner.write("mine", "ours\n", "w").await;
    let log = owner.closed("mine").await;
    assert_eq!((log.text().as_str(), log.code()), ("got ours\n", 0));
}

#[tokio::test]
async fn broken_connection_affects_no_other() {
    let server = outpost().start().await;
    let (client, other) = (server.client().await, server.client().await);
    client.start(sh("p", "read x; echo $x").stdin()).await;
    other.start(sh("q", "read x").stdin()).await;
    other.cut().await;
    client.write("p", "still here\n", "w").await;
    assert_eq!(client.closed("p").await.text(), "still here\n");
}
