//! Time is limited only if somebody says so, and then for all of it.

use outpost_testkit::web;
use serde_json::json;

use super::{asking, refusal, so_far, streamed, streaming};
use crate::ready;

const WORDS: &str = "it took longer than 150 ms";

#[tokio::test]
async fn a_response_that_never_comes() {
    let (_server, client) = ready().await;
    let web = web::Web::start(|_| vec![web::Say::Silence]).await;
    for streams in [false, true] {
        let more = json!({"timeoutMs": 150, "streamResponse": streams});
        let error = refusal(&client, asking(&web.url("/"), more)).await;
        let words = format!("http/request failed: {WORDS}");
        assert_eq!(error.parts(), (-32603, &*words));
        web.all_over().await;
    }
}

#[tokio::test]
async fn a_body_that_never_ends() {
    let (_server, client) = ready().await;
    let web = web::Web::start(|_| {
        let head = web::head("200 OK", &["Content-Length: 10"]);
        vec![head, web::Say::Bytes(b"five.".to_vec()), web::Say::Silence]
    })
    .await;
    let params = asking(&web.url("/"), json!({"timeoutMs": 150}));
    let error = refusal(&client, params).await;
    let words = format!("http/request failed: {WORDS}");
    assert_eq!(error.parts(), (-32603, &*words));
    let mut params = streaming(&web.url("/"), "s");
    params["timeoutMs"] = json!(150);
    client.call("http/request", params).await;
    let story = streamed(&client, "s").await;
    assert_eq!(story.bytes, b"five.");
    assert_eq!(story.error.as_deref(), Some(WORDS));
    web.all_over().await;
}

#[tokio::test]
async fn without_one_it_takes_as_long_as_it_takes() {
    let (_server, client) = ready().await;
    let web = web::Web::start(|_| {
        let head = web::head("200 OK", &["Content-Length: 10"]);
        let five = || web::Say::Bytes(b"five.".to_vec());
        vec![head, five(), web::Say::Wait, five()]
    })
    .await;
    let huge = json!({"timeoutMs": u64::MAX, "streamResponse": true, "requestId": "s"});
    client
        .call("http/request", asking(&web.url("/"), huge))
        .await;
    assert_eq!(so_far(&client, "s", 5).await, b"five.");
    web.go_on();
    let story = streamed(&client, "s").await;
    assert_eq!((&*story.bytes, story.error), (&b"five.five."[..], None));
}
