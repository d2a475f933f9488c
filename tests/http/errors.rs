//! Tests rejected and failed requests, and that their messages contain no secrets.

use outpost_testkit::http_test_server;
use serde_json::json;

use super::{get_params, request_fails, streaming};
use crate::ready;

#[tokio::test]
async fn invalid_requests_are_rejected() {
    let (_server, client) = ready().await;
    let method = "http/request method is invalid";
    let scheme = "http/request url is invalid: only http and https URLs are supported";
    for (more, message) in [
        (json!({"method": "G T"}), method),
        (json!({"method": "CONNECT"}), method),
        (json!({"url": "file:///etc/passwd"}), scheme),
        (json!({"url": "ws://127.0.0.1/"}), scheme),
        (
            json!({"url": "nonsense?s3cret"}),
            "http/request url is invalid: relative URL without a base",
        ),
        (
            json!({"headers": [{"name": "a b", "value": "s3cret"}]}),
            "http/request header number 1 has a name that cannot be sent",
        ),
        (
            json!({"headers": [{"name": "A", "value": "s3cret\n"}]}),
            "http/request header A has a value that cannot be sent",
        ),
        (
            json!({"headers": [{"name": "content-length", "value": "7"}]}),
            "http/request header content-length contradicts the length of the body",
        ),
        (
            json!({"requestId": "x".repeat(257)}),
            "requestId must be at most 256 bytes long",
        ),
        (
            json!({"requestId": "", "streamResponse": true}),
            "requestId must not be empty",
        ),
    ] {
        let error = request_fails(&client, get_params("http://127.0.0.1:1/", more)).await;
        assert_eq!(error.parts(), (-32602, message));
    }
    for wrong in [
        json!({"method": 1}),
        json!({"url": null}),
        json!({"headers": [["A", "b"]]}),
        json!({"bodyBase64": "?"}),
        json!({"timeoutMs": -1}),
        json!({"redirectPolicy": "sometimes"}),
        json!({"streamResponse": 1}),
    ] {
        let error = request_fails(&client, get_params("http://127.0.0.1:1/", wrong)).await;
        assert_eq!(error.code, -32602, "{error:?}");
    }
}

#[tokio::test]
async fn unreachable_host_is_an_error() {
    let (_server, client) = ready().await;
    let free = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = free.local_addr().expect("an address");
    drop(free);
    let message = format!(
        "http/request failed: cannot connect to {address}: Connection refused (os error 111)"
    );
    let url = format!("http://me:s3cret@{address}/path?s3cret");
    for params in [get_params(&url, json!({})), streaming(&url, "r1")] {
        let error = request_fails(&client, params).await;
        assert_eq!(error.parts(), (-32603, &*message));
    }
}

#[tokio::test]
async fn non_http_response_is_an_error() {
    let (_server, client) = ready().await;
    let web = http_test_server::HttpTestServer::start(|request| match &*request.target {
        "/nonsense" => vec![http_test_server::ResponseStep::Bytes(
            b"220 ftp.example ready\r\n\r\n".to_vec(),
        )],
        _ => vec![http_test_server::ResponseStep::Close],
    })
    .await;
    for path in ["/nonsense", "/nothing"] {
        let params = get_params(&web.url(path), json!({"method": "POST"}));
        let error = request_fails(&client, params).await;
        let message = format!("http/request failed: no response from {}: ", web.address());
        assert_eq!(error.code, -32603);
        assert!(error.message.starts_with(&message), "{error:?}");
    }
}

#[tokio::test]
async fn unknown_http_methods_are_rejected() {
    let (_server, client) = ready().await;
    for name in ["http/get", "http/request/ack", "http/request/cancel"] {
        let error = client.call_fails(name, json!({})).await;
        let message = format!("exec-server stub does not implement `{name}` yet");
        assert_eq!(error.parts(), (-32601, &*message));
    }
    client
        .notify("http/request/ack", json!({"requestId": 1}))
        .await;
    let response = client.error_without_id(0).await;
    let message = response["error"]["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("invalid params of http/request/ack: "),
        "{response}"
    );
}
