//! Tests proxies configured in the server's environment.

use outpost_testkit::{ServerCommand, http_test_server};
use serde_json::json;

use super::{get, get_params, request_fails, text};
use crate::outpost;

/// Starts a proxy that sends its own responses.
async fn proxy() -> http_test_server::HttpTestServer {
    http_test_server::HttpTestServer::start(|request| match &*request.method {
        "CONNECT" => http_test_server::page("403 Forbidden", &[], b""),
        _ => http_test_server::page("200 OK", &[], b"by proxy"),
    })
    .await
}

fn server_with_proxy(proxy: &http_test_server::HttpTestServer) -> ServerCommand {
    outpost().env("HTTP_PROXY", &proxy.url("/"))
}

#[tokio::test]
async fn proxies_are_used() {
    let proxy = proxy().await;
    let credentials = format!("http://me:s3cret@{}", proxy.address());
    for (name, value) in [
        ("HTTP_PROXY", proxy.url("")),
        ("http_proxy", proxy.url("")),
        ("ALL_PROXY", proxy.url("")),
        ("http_proxy", credentials),
    ] {
        let number = proxy.count();
        let server = outpost().env(name, &value).start().await;
        let client = server.client().await;
        let result = get(&client, "http://nowhere.example/a?b").await;
        assert_eq!(text(&result), "by proxy");
        let request = proxy.request(number).await;
        assert_eq!(request.target, "http://nowhere.example/a?b");
        let authorization = request.values("proxy-authorization");
        match value.contains('@') {
            true => assert_eq!(authorization, ["Basic bWU6czNjcmV0"]),
            false => assert!(authorization.is_empty(), "{request:?}"),
        }
    }
}

#[tokio::test]
async fn no_proxy_is_respected() {
    let proxy = proxy().await;
    let web = http_test_server::HttpTestServer::start(|_| {
        http_test_server::page("200 OK", &[], b"direct")
    })
    .await;
    let server = server_with_proxy(&proxy)
        .env("NO_PROXY", "127.0.0.1")
        .start()
        .await;
    let client = server.client().await;
    assert_eq!(text(&get(&client, &web.url("/")).await), "direct");
    assert_eq!(
        text(&get(&client, "http://nowhere.example/").await),
        "by proxy"
    );
}

#[tokio::test]
async fn proxy_error_contains_no_secrets() {
    let proxy = proxy().await;
    let value = format!("http://me:s3cret@{}", proxy.address());
    let server = outpost().env("HTTPS_PROXY", &value).start().await;
    let client = server.client().await;
    let url = "https://nowhere.example/s3cret?s3cret";
    let error = request_fails(&client, get_params(url, json!({}))).await;
    assert_eq!(error.code, -32603);
    let message = "http/request failed: cannot connect to nowhere.example: ";
    assert!(error.message.starts_with(message), "{error:?}");
    assert!(!error.message.contains("s3cret"), "{error:?}");
    assert_eq!(proxy.request(0).await.target, "nowhere.example:443");
}
