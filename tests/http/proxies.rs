//! The proxies of the system.

use outpost_testkit::{Launch, web};
use serde_json::json;

use super::{asking, get, refusal, text};
use crate::outpost;

/// A proxy that answers itself.
async fn proxy() -> web::Web {
    web::Web::start(|asked| match &*asked.method {
        "CONNECT" => web::page("403 Forbidden", &[], b""),
        _ => web::page("200 OK", &[], b"by proxy"),
    })
    .await
}

fn through(proxy: &web::Web) -> Launch {
    outpost().env("HTTP_PROXY", &proxy.url("/"))
}

#[tokio::test]
async fn requests_go_through_them() {
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
        let asked = proxy.asked(number).await;
        assert_eq!(asked.target, "http://nowhere.example/a?b");
        let proven = asked.values("proxy-authorization");
        match value.contains('@') {
            true => assert_eq!(proven, ["Basic bWU6czNjcmV0"]),
            false => assert!(proven.is_empty(), "{asked:?}"),
        }
    }
}

#[tokio::test]
async fn but_not_where_they_should_not() {
    let proxy = proxy().await;
    let web = web::Web::start(|_| web::page("200 OK", &[], b"direct")).await;
    let server = through(&proxy).env("NO_PROXY", "127.0.0.1").start().await;
    let client = server.client().await;
    assert_eq!(text(&get(&client, &web.url("/")).await), "direct");
    assert_eq!(
        text(&get(&client, "http://nowhere.example/").await),
        "by proxy"
    );
}

#[tokio::test]
async fn one_that_refuses_is_an_error_that_tells_no_secrets() {
    let proxy = proxy().await;
    let value = format!("http://me:s3cret@{}", proxy.address());
    let server = outpost().env("HTTPS_PROXY", &value).start().await;
    let client = server.client().await;
    let url = "https://nowhere.example/s3cret?s3cret";
    let error = refusal(&client, asking(url, json!({}))).await;
    assert_eq!(error.code, -32603);
    let words = "http/request failed: cannot connect to nowhere.example: ";
    assert!(error.message.starts_with(words), "{error:?}");
    assert!(!error.message.contains("s3cret"), "{error:?}");
    assert_eq!(proxy.asked(0).await.target, "nowhere.example:443");
}
