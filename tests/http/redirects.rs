//! Responses that point elsewhere.

use outpost_testkit::{base64, web};
use serde_json::json;

use super::{asking, get, refusal, text};
use crate::{outpost, ready};

#[tokio::test]
async fn they_are_followed_unless_that_is_not_wanted() {
    let (_server, client) = ready().await;
    let web = web::Web::start(|asked| match &*asked.target {
        "/a" => web::page("302 Found", &["Location: b?c=d#e"], b"not here"),
        "/b?c=d" => web::page("200 OK", &[], b"here"),
        _ => web::page("404 Not Found", &[], b""),
    })
    .await;
    let result = get(&client, &web.url("/a")).await;
    assert_eq!((&result["status"], &*text(&result)), (&json!(200), "here"));
    let params = asking(&web.url("/a"), json!({"redirectPolicy": "stop"}));
    let result = client.call("http/request", params).await;
    assert_eq!(
        (&result["status"], &*text(&result)),
        (&json!(302), "not here")
    );
    let location = json!({"name": "location", "value": "b?c=d#e"});
    assert_eq!(result["headers"][0], location);
}

#[tokio::test]
async fn some_keep_the_body_and_some_do_not() {
    let (_server, client) = ready().await;
    let web = web::Web::start(|asked| match asked.target.strip_prefix("/to/") {
        Some(status) => web::page(status, &["Location: /there"], b""),
        None => {
            let kind = asked.values("content-type").join("");
            let seen = format!("{} {kind} {}", asked.method, asked.body.len());
            web::page("200 OK", &[], seen.as_bytes())
        }
    })
    .await;
    for (status, method, seen) in [
        ("301", "POST", "GET  0"),
        ("303", "PUT", "GET  0"),
        ("301", "PUT", "PUT text/plain 5"),
        ("307", "POST", "POST text/plain 5"),
        ("308", "POST", "POST text/plain 5"),
    ] {
        let params = json!({
            "method": method,
            "url": web.url(&format!("/to/{status}")),
            "headers": [{"name": "Content-Type", "value": "text/plain"}],
            "bodyBase64": base64(b"12345"),
        });
        let result = client.call("http/request", params).await;
        assert_eq!(text(&result), seen, "{status} {method}");
    }
}

#[tokio::test]
async fn what_was_for_one_host_is_not_for_another() {
    let server = outpost().env("SERVICE_KEY", "k3y").start().await;
    let client = server.client().await;
    let other = web::Web::start(|_| web::page("200 OK", &[], b"other")).await;
    let to_other = format!("Location: {}", other.url("/"));
    let web = web::Web::start(move |asked| match &*asked.target {
        "/same" => web::page("307 Temporary Redirect", &["Location: /other"], b""),
        _ => web::page("307 Temporary Redirect", &[&to_other], b""),
    })
    .await;
    let headers = json!([
        {"name": "Authorization", "value": "Bearer a"},
        {"name": "Cookie", "value": "a=b"},
        {"name": "X-Service-Key", "value": "", "valueEnvVar": "SERVICE_KEY"},
        {"name": "X-Plain", "value": "plain"},
    ]);
    let params = asking(&web.url("/same"), json!({"headers": headers}));
    assert_eq!(text(&client.call("http/request", params).await), "other");
    for number in [0, 1] {
        let asked = web.asked(number).await;
        assert_eq!(asked.values("authorization"), ["Bearer a"]);
        assert_eq!(asked.values("x-service-key"), ["k3y"]);
    }
    let asked = other.asked(0).await;
    for secret in ["authorization", "cookie", "x-service-key", "referer"] {
        assert!(asked.values(secret).is_empty(), "{asked:?}");
    }
    assert_eq!(asked.values("x-plain"), ["plain"]);
}

#[tokio::test]
async fn there_is_an_end_to_it() {
    let (_server, client) = ready().await;
    let web = web::Web::start(|asked| match &*asked.target {
        "/out" => web::page("302 Found", &["Location: file:///etc/passwd"], b""),
        _ => web::page("302 Found", &["Location: /again"], b""),
    })
    .await;
    let error = refusal(&client, asking(&web.url("/"), json!({}))).await;
    let words = "http/request failed: it was redirected more than 10 times";
    assert_eq!(error.parts(), (-32603, words));
    assert_eq!(web.count(), 11);
    let error = refusal(&client, asking(&web.url("/out"), json!({}))).await;
    let words =
        "http/request failed: it was redirected to something that is neither http nor https";
    assert_eq!(error.parts(), (-32603, words));
}
