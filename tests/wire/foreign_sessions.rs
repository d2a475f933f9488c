//! Tests that only the server's owner can inspect other sessions.

use outpost_testkit::{Transport, sh};
use serde_json::json;

use crate::over_each_transport;

#[tokio::test]
async fn foreign_sessions_need_a_unix_socket() {
    over_each_transport(async |server, client| {
        client.handshake().await;
        let reach = json!({"processId": "p", "sessionId": "nope", "signal": "kill"});
        for method in [
            "process/read",
            "process/signal",
            "process/terminate",
            "session/close",
        ] {
            let rejected = client.call_fails(method, reach.clone()).await;
            let expected = match server.transport() {
                Transport::Unix => (-32600, "unknown session id nope"),
                _ => (-32011, "not permitted: admin is required"),
            };
            assert_eq!(rejected.parts(), expected, "{method}");
        }
    })
    .await;
}

#[tokio::test]
async fn foreign_processes_are_read_and_terminated() {
    let server = crate::outpost().on(Transport::Unix).start().await;
    let (client, owner) = (server.client().await, server.client().await);
    client.start(sh("p", "echo ready; exec sleep 1000")).await;
    client.wait_output("p", "ready").await;
    let list = owner.call("session/list", json!({})).await;
    let session = list["sessions"][0]["sessionId"].clone();
    let read = json!({"processId": "p", "sessionId": session});
    let page = owner.call("process/read", read).await;
    assert_eq!(page["chunks"][0]["chunk"], "cmVhZHkK", "{page}");
    let end = json!({"processId": "p", "sessionId": session});
    let response = owner.call("process/terminate", end).await;
    assert_eq!(response, json!({"running": true}));
    // The session's own client gets the usual events.
    assert_eq!(client.closed("p").await.code(), 137);
}
