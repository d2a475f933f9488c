//! The owner of the server looks into any session; who isn't proven to be the owner doesn't.

use outpost_testkit::{Transport, sh};
use serde_json::json;

use crate::over_each_transport;

#[tokio::test]
async fn over_a_unix_socket_and_nowhere_else() {
    over_each_transport(async |server, client| {
        client.shake_hands().await;
        let reach = json!({"processId": "p", "sessionId": "nope", "signal": "kill"});
        for method in [
            "process/read",
            "process/signal",
            "process/terminate",
            "session/close",
        ] {
            let refused = client.fails(method, reach.clone()).await;
            let expected = match server.transport() {
                Transport::Unix => "unknown session id nope",
                _ => "sessionId is for the owner of the server, over a unix socket",
            };
            assert_eq!(refused.parts(), (-32600, expected), "{method}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_runs_elsewhere_is_read_and_ended() {
    let server = crate::outpost().on(Transport::Unix).start().await;
    let (client, owner) = (server.client().await, server.client().await);
    client.start(sh("p", "echo ready; exec sleep 1000")).await;
    client.sees("p", "ready").await;
    let list = owner.call("session/list", json!({})).await;
    let session = list["sessions"][0]["sessionId"].clone();
    let read = json!({"processId": "p", "sessionId": session});
    let page = owner.call("process/read", read).await;
    assert_eq!(page["chunks"][0]["chunk"], "cmVhZHkK", "{page}");
    let end = json!({"processId": "p", "sessionId": session});
    let ended = owner.call("process/terminate", end).await;
    assert_eq!(ended, json!({"running": true}));
    // Its client hears of it as of any other end.
    assert_eq!(client.closed("p").await.code(), 137);
}
