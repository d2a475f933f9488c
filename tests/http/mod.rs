//! Tests `http/request`.

mod bodies;
mod errors;
mod gigabyte;
mod headers;
mod limits;
mod proxies;
mod redirects;
mod secrets;
mod streams;
mod timeouts;
mod tls;

use outpost_testkit::{Client, RpcError, unbase64};
use serde_json::{Value, json};

/// Sends a GET request and returns the whole response.
async fn get(client: &Client, url: &str) -> Value {
    client
        .call("http/request", get_params(url, json!({})))
        .await
}

/// Sends a request that must fail and returns the error.
async fn request_fails(client: &Client, params: Value) -> RpcError {
    client.call_fails("http/request", params).await
}

/// Params of a GET request, and more.
fn get_params(url: &str, more: Value) -> Value {
    let mut params = json!({"method": "GET", "url": url, "headers": [], "requestId": "r1"});
    let members = more.as_object().expect("an object").clone();
    params.as_object_mut().expect("an object").extend(members);
    params
}

/// Params of a GET request with a streamed response.
fn streaming(url: &str, id: &str) -> Value {
    get_params(url, json!({"requestId": id, "streamResponse": true}))
}

fn text(result: &Value) -> String {
    String::from_utf8_lossy(&body(result)).into_owned()
}

fn body(result: &Value) -> Vec<u8> {
    unbase64(&result["bodyBase64"])
}

/// A received streamed body.
#[derive(Debug, Default, PartialEq)]
struct Streamed {
    bytes: Vec<u8>,
    /// The sizes of the pieces, without the last one.
    pieces: Vec<usize>,
    error: Option<String>,
}

/// Waits for the end of a stream and checks its sequence numbers.
async fn streamed(client: &Client, id: &str) -> Streamed {
    let what = format!("the end of {id}");
    client.until(&what, |seen| log(&seen.messages, id)).await
}

/// Collects a stream once it has ended.
fn log(messages: &[std::sync::Arc<Value>], id: &str) -> Option<Streamed> {
    // Checked first: collecting a long body again for each piece would take quadratic time.
    let over = |message: &&std::sync::Arc<Value>| {
        message["params"]["requestId"] == id && message["params"]["done"] == true
    };
    messages.iter().rev().find(over)?;
    let mut log = Streamed::default();
    let mut expected = 1;
    for message in messages {
        let params = &message["params"];
        if message["method"] != "http/request/bodyDelta" || params["requestId"] != id {
            continue;
        }
        assert_eq!(params["seq"], expected, "{message}");
        expected += 1;
        let bytes = unbase64(&params["deltaBase64"]);
        if params["done"] == true {
            assert!(bytes.is_empty(), "the last piece has bytes");
            log.error = params["error"].as_str().map(str::to_owned);
            return Some(log);
        }
        assert_eq!(params["error"], Value::Null);
        assert!(!bytes.is_empty() && bytes.len() <= 1024 * 1024);
        log.pieces.push(bytes.len());
        log.bytes.extend(bytes);
    }
    None
}

/// Waits for this many bytes of a stream and returns those received.
async fn wait_for_bytes(client: &Client, id: &str, bytes: usize) -> Vec<u8> {
    client
        .until("more of the body", |seen| {
            let mut got = Vec::new();
            for message in &seen.messages {
                let params = &message["params"];
                if message["method"] == "http/request/bodyDelta" && params["requestId"] == id {
                    got.extend(unbase64(&params["deltaBase64"]));
                }
            }
            (got.len() >= bytes).then_some(got)
        })
        .await
}
