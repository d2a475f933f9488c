//! Tests timeouts: none by default, else for the whole request.

use outpost_testkit::http_test_server;
use serde_json::json;

use super::{get_params, request_fails, streamed, streaming, wait_for_bytes};
use crate::ready;

const MESSAGE: &str = "it took longer than 150 ms";

#[tokio::test]
async fn missing_response_times_out() {
    let (_server, client) = ready().await;
    let web =
        http_test_server::HttpTestServer::start(|_| vec![http_test_server::ResponseStep::Silence])
            .await;
    for streams in [false, true] {
        let more = json!({"timeoutMs": 150, "streamResponse": streams});
        let error = request_fails(&client, get_params(&web.url("/"), more)).await;
        let message = format!("http/request failed: {MESSAGE}");
        assert_eq!(error.parts(), (-32603, &*message));
        web.wait_idle().await;
    }
}

#[tokio::test]
async fn endless_body_times_out() {
    let (_server, client) = ready().await;
    let web = http_test_server::HttpTestServer::start(|_| {
        let head = http_test_server::head("200 OK", &["Content-Length: 10"]);
        vec![
            head,
            http_test_server::ResponseStep::Bytes(b"five.".to_vec()),
            http_test_server::ResponseStep::Silence,
        ]
    })
    .await;
    let params = get_params(&web.url("/"), json!({"timeoutMs": 150}));
    let error = request_fails(&client, params).await;
    let message = format!("http/request failed: {MESSAGE}");
    assert_eq!(error.parts(), (-32603, &*message));
    let mut params = streaming(&web.url("/"), "s");
    params["timeoutMs"] = json!(150);
    client.call("http/request", params).await;
    let log = streamed(&client, "s").await;
    assert_eq!(log.bytes, b"five.");
    assert_eq!(log.error.as_deref(), Some(MESSAGE));
    web.wait_idle().await;
}

#[tokio::test]
async fn request_without_timeout_waits() {
    let (_server, client) = ready().await;
    let web = http_test_server::HttpTestServer::start(|_| {
        let head = http_test_server::head("200 OK", &["Content-Length: 10"]);
        let five = || http_test_server::ResponseStep::Bytes(b"five.".to_vec());
        vec![head, five(), http_test_server::ResponseStep::Wait, five()]
    })
    .await;
    let huge = json!({"timeoutMs": u64::MAX, "streamResponse": true, "requestId": "s"});
    client
        .call("http/request", get_params(&web.url("/"), huge))
        .await;
    assert_eq!(wait_for_bytes(&client, "s", 5).await, b"five.");
    web.resume();
    let log = streamed(&client, "s").await;
    assert_eq!((&*log.bytes, log.error), (&b"five.five."[..], None));
}
