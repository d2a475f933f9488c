//! `process/network`: the decisions and the traffic of a process's proxy.

use outpost_testkit::http_test_server::{HttpTestServer, page};
use outpost_testkit::{Start, sh};
use serde_json::json;

use crate::ready;

async fn web_server() -> HttpTestServer {
    HttpTestServer::start(|_| page("200 OK", &[], b"hello")).await
}

/// Requests these URLs in one process, which may reach `allowed`.
fn requests(id: &str, allowed: &str, urls: &[&str]) -> Start {
    let script = format!("curl -s -m 30 -o /dev/null {}; true", urls.join(" "));
    sh(id, &script).with("network", json!({"allow": [allowed]}))
}

#[tokio::test]
async fn decisions_have_their_targets_and_their_traffic() {
    let (_server, client) = ready().await;
    let web = web_server().await;
    let port = web.address().port();
    let host = format!("localhost:{port}");
    let url = format!("http://{host}/");
    let urls = [&*url, "http://other.test/"];
    client.run(requests("p", &host, &urls)).await;
    let params = json!({"processId": "p"});
    let network = client.call("process/network", params).await;
    let (allowed, denied) = (&network["decisions"][0], &network["decisions"][1]);
    for (decision, expected) in [
        (
            allowed,
            json!({"decision": "allow", "reason": "allow", "host": "localhost", "port": port}),
        ),
        (
            denied,
            json!({
                "decision": "deny", "reason": "not_allowed", "host": "other.test", "port": 80,
                "sentBytes": 0, "receivedBytes": 0,
            }),
        ),
    ] {
        for (name, value) in expected.as_object().expect("an object") {
            assert_eq!(decision[name], *value, "{name}: {network}");
        }
        assert_eq!(decision["protocol"], "http");
        assert!(decision["timestamp"].is_string(), "{network}");
    }
    let bytes = |name: &str| allowed[name].as_u64().expect("a number");
    let (sent, received) = (bytes("sentBytes"), bytes("receivedBytes"));
    assert!(sent > 30 && received > 30, "{network}");
    let counts = [
        "decisionCount",
        "droppedDecisions",
        "lostDecisions",
        "bytes",
    ];
    assert_eq!(
        counts.map(|name| network[name].as_u64()),
        [2, 0, 0, sent + received].map(Some)
    );
}

#[tokio::test]
async fn older_decisions_are_dropped_and_counted() {
    let (_server, client) = ready().await;
    let urls = "http://other.test/[1-300]";
    client.run(requests("p", "a.test", &[urls])).await;
    let params = json!({"processId": "p"});
    let network = client.call("process/network", params).await;
    assert_eq!(network["decisions"].as_array().map(Vec::len), Some(256));
    assert_eq!(network["decisionCount"], 300);
    assert_eq!(network["droppedDecisions"], 44);
}

#[tokio::test]
async fn request_waits_for_the_start_of_its_process() {
    let (_server, client) = ready().await;
    let start = sh("p", "true").with("network", json!({"allow": ["a.test"]}));
    let start = client.request_start(start).await;
    let params = json!({"processId": "p"});
    let network = client.call("process/network", params).await;
    let none = json!({
        "decisions": [], "decisionCount": 0, "droppedDecisions": 0, "lostDecisions": 0, "bytes": 0,
    });
    assert_eq!(network, none);
    assert!(client.response(start).await.is_ok());
}

#[tokio::test]
async fn process_without_a_managed_network_is_an_error() {
    let (server, client) = ready().await;
    client.run(sh("p", "true")).await;
    for (params, code, message) in [
        (
            json!({"processId": "p"}),
            -32600,
            "process p has no managed network",
        ),
        (
            json!({"processId": "none"}),
            -32600,
            "unknown process id none",
        ),
        (
            json!({"processId": 7}),
            -32602,
            "invalid type: number, expected a string",
        ),
        (json!({}), -32602, "missing field `processId`"),
    ] {
        let error = client.call_fails("process/network", params.clone()).await;
        assert!(error.message.starts_with(message), "{params}: {error:?}");
        assert_eq!(error.code, code, "{params}");
    }
    let other = server.client().await;
    let error = other
        .call_fails("process/network", json!({"processId": "p"}))
        .await;
    assert_eq!(error.parts(), (-32600, "unknown process id p"));
    let early = server.connect().await;
    let error = early.call_fails("process/network", json!({"processId": "p"}));
    let message = "client must call initialize before using exec methods";
    assert_eq!(error.await.parts(), (-32600, message));
}
