//! Tests redirects.

use outpost_testkit::{base64, http_test_server};
use serde_json::json;

use super::{get, get_params, request_fails, text};
use crate::{outpost, ready};

#[tokio::test]
async fn redirects_are_followed_unless_disabled() {
    let (_server, client) = ready().await;
    let web = http_test_server::HttpTestServer::start(|request| match &*request.target {
        "/a" => http_test_server::page("302 Found", &["Location: b?c=d#e"], b"not here"),
        "/b?c=d" => http_test_server::page("200 OK", &[], b"here"),
        _ => http_test_server::page("404 Not Found", &[], b""),
    })
    .await;
    let result = get(&client, &web.url("/a")).await;
    assert_eq!((&result["status"], &*text(&result)), (&json!(200), "here"));
    let params = get_params(&web.url("/a"), json!({"redirectPolicy": "stop"}));
    let result = client.call("http/request", params).await;
    assert_eq!(
        (&result["status"], &*text(&result)),
        (&json!(302), "not here")
    );
    let location = json!({"name": "location", "value": "b?c=d#e"});
    assert_eq!(result["headers"][0], location);
}

#[tokio::test]
async fn redirect_status_decides_whether_the_body_is_resent() {
    let (_server, client) = ready().await;
    let web = http_test_server::HttpTestServer::start(|request| {
        match request.target.strip_prefix("/to/") {
            Some(status) => http_test_server::page(status, &["Location: /there"], b""),
            None => {
                let kind = request.values("content-type").join("");
                let seen = format!("{} {kind} {}", request.method, request.body.len());
                http_test_server::page("200 OK", &[], seen.as_bytes())
            }
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
async fn credentials_are_dropped_across_origins() {
    let server = outpost().env("SERVICE_KEY", "k3y").start().await;
    let client = server.client().await;
    let other = http_test_server::HttpTestServer::start(|_| {
        http_test_server::page("200 OK", &[], b"other")
    })
    .await;
    let to_other = format!("Location: {}", other.url("/"));
    let web = http_test_server::HttpTestServer::start(move |request| match &*request.target {
        "/same" => http_test_server::page("307 Temporary Redirect", &["Location: /other"], b""),
        _ => http_test_server::page("307 Temporary Redirect", &[&to_other], b""),
    })
    .await;
    let headers = json!([
        {"name": "Authorization", "value": "Bearer a"},
        {"name": "Cookie", "value": "a=b"},
        {"name": "X-Service-Key", "value": "", "valueEnvVar": "SERVICE_KEY"},
        {"name": "X-Plain", "value": "plain"},
    ]);
    let params = get_params(&web.url("/same"), json!({"headers": headers}));
    assert_eq!(text(&client.call("http/request", params).await), "other");
    for number in [0, 1] {
        let request = web.request(number).await;
        assert_eq!(request.values("authorization"), ["Bearer a"]);
        assert_eq!(request.values("x-service-key"), ["k3y"]);
    }
    let request = other.request(0).await;
    for secret in ["authorization", "cookie", "x-service-key", "referer"] {
        assert!(request.values(secret).is_empty(), "{request:?}");
    }
    assert_eq!(request.values("x-plain"), ["plain"]);
}

#[tokio::test]
async fn redirects_are_bounded() {
    let (_server, client) = ready().await;
    let web = http_test_server::HttpTestServer::start(|request| match &*request.target {
        "/out" => http_test_server::page("302 Found", &["Location: file:///etc/passwd"], b""),
        _ => http_test_server::page("302 Found", &["Location: /again"], b""),
    })
    .await;
    let error = request_fails(&client, get_params(&web.url("/"), json!({}))).await;
    let message = "http/request failed: more than 10 redirects";
    assert_eq!(error.parts(), (-32603, message));
    assert_eq!(web.count(), 11);
    let error = request_fails(&client, get_params(&web.url("/out"), json!({}))).await;
    let message = "http/request failed: redirect target is neither http nor https";
    assert_eq!(error.parts(), (-32603, message));
}
