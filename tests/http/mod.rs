//! `http/request`: what is sent, what comes back, and what is refused.

mod bodies;
mod gigabyte;
mod headers;
mod limits;
mod proxies;
mod redirects;
mod refusals;
mod secrets;
mod streams;
mod timeouts;
mod tls;

use outpost_testkit::{Client, RpcError, unbase64};
use serde_json::{Value, json};

/// Asks for something and gets all of it.
async fn get(client: &Client, url: &str) -> Value {
    client.call("http/request", asking(url, json!({}))).await
}

/// Asks for something that can't be had.
async fn refusal(client: &Client, params: Value) -> RpcError {
    client.fails("http/request", params).await
}

/// Params of a GET, and more.
fn asking(url: &str, more: Value) -> Value {
    let mut params = json!({"method": "GET", "url": url, "headers": [], "requestId": "r1"});
    let members = more.as_object().expect("an object").clone();
    params.as_object_mut().expect("an object").extend(members);
    params
}

/// Params of a GET whose body is streamed.
fn streaming(url: &str, id: &str) -> Value {
    asking(url, json!({"requestId": id, "streamResponse": true}))
}

fn text(result: &Value) -> String {
    String::from_utf8_lossy(&body(result)).into_owned()
}

fn body(result: &Value) -> Vec<u8> {
    unbase64(&result["bodyBase64"])
}

/// What came of a streamed body.
#[derive(Debug, Default, PartialEq)]
struct Streamed {
    bytes: Vec<u8>,
    /// How large each piece was, the last one left out.
    pieces: Vec<usize>,
    error: Option<String>,
}

/// Waits for the end of a stream; its numbers have to be right.
async fn streamed(client: &Client, id: &str) -> Streamed {
    let what = format!("the end of {id}");
    client.until(&what, |seen| story(&seen.messages, id)).await
}

/// All of a stream, once it is over.
fn story(messages: &[std::sync::Arc<Value>], id: &str) -> Option<Streamed> {
    // Looking again at all of a long body with each of its pieces would take for ever.
    let over = |message: &&std::sync::Arc<Value>| {
        message["params"]["requestId"] == id && message["params"]["done"] == true
    };
    messages.iter().rev().find(over)?;
    let mut story = Streamed::default();
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
            story.error = params["error"].as_str().map(str::to_owned);
            return Some(story);
        }
        assert_eq!(params["error"], Value::Null);
        assert!(!bytes.is_empty() && bytes.len() <= 1024 * 1024);
        story.pieces.push(bytes.len());
        story.bytes.extend(bytes);
    }
    None
}

/// Waits for so many bytes of a stream that goes on.
async fn so_far(client: &Client, id: &str, bytes: usize) -> Vec<u8> {
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
