//! What isn't tried, and what failed, in words that tell nothing they shouldn't.

use outpost_testkit::web;
use serde_json::json;

use super::{asking, refusal, streaming};
use crate::ready;

#[tokio::test]
async fn params_that_make_no_request() {
    let (_server, client) = ready().await;
    let method = "http/request method is not one that can be sent";
    let scheme = "http/request url is invalid: only http and https can be asked for";
    for (more, words) in [
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
            "http/request header content-length does not tell the length of the body",
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
        let error = refusal(&client, asking("http://127.0.0.1:1/", more)).await;
        assert_eq!(error.parts(), (-32602, words));
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
        let error = refusal(&client, asking("http://127.0.0.1:1/", wrong)).await;
        assert_eq!(error.code, -32602, "{error:?}");
        assert!(error.message.starts_with("invalid params: "), "{error:?}");
    }
}

#[tokio::test]
async fn nobody_is_there() {
    let (_server, client) = ready().await;
    let free = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = free.local_addr().expect("an address");
    drop(free);
    let words = format!(
        "http/request failed: cannot connect to {address}: Connection refused (os error 111)"
    );
    let url = format!("http://me:s3cret@{address}/path?s3cret");
    for params in [asking(&url, json!({})), streaming(&url, "r1")] {
        let error = refusal(&client, params).await;
        assert_eq!(error.parts(), (-32603, &*words));
    }
}

#[tokio::test]
async fn what_comes_back_is_no_http() {
    let (_server, client) = ready().await;
    let web = web::Web::start(|asked| match &*asked.target {
        "/nonsense" => vec![web::Say::Bytes(b"220 ftp.example ready\r\n\r\n".to_vec())],
        _ => vec![web::Say::Close],
    })
    .await;
    for path in ["/nonsense", "/nothing"] {
        let params = asking(&web.url(path), json!({"method": "POST"}));
        let error = refusal(&client, params).await;
        let words = format!("http/request failed: no response from {}: ", web.address());
        assert_eq!(error.code, -32603);
        assert!(error.message.starts_with(&words), "{error:?}");
    }
}

#[tokio::test]
async fn other_methods_of_the_family_are_unknown() {
    let (_server, client) = ready().await;
    for name in ["http/get", "http/request/ack", "http/request/cancel"] {
        let error = client.fails(name, json!({})).await;
        let words = format!("unknown method: {name}");
        assert_eq!(error.parts(), (-32601, &*words));
    }
    client
        .notify("http/request/ack", json!({"requestId": 1}))
        .await;
    let answer = client.unasked(0).await;
    let words = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(
        words.starts_with("invalid params of http/request/ack: "),
        "{answer}"
    );
}
