//! Tests headers: order, repetition, and values that only the server knows.

use outpost_testkit::http_test_server;
use serde_json::{Value, json};

use super::{get, get_params, request_fails};
use crate::{outpost, ready};

fn header(name: &str, value: &str, variable: Option<&str>) -> Value {
    json!({"name": name, "value": value, "valueEnvVar": variable})
}

#[tokio::test]
async fn request_header_order_is_kept() {
    let (_server, client) = ready().await;
    let web =
        http_test_server::HttpTestServer::start(|_| http_test_server::page("200 OK", &[], b""))
            .await;
    let headers = json!([
        header("X-Second", "1", None),
        header("X-Repeated", "a", None),
        header("X-Repeated", "", None),
        header("X-Repeated", "b, c", None),
        header("Accept", "text/html", None),
        header("X-First", "grün", None),
    ]);
    let params = get_params(&web.url("/"), json!({"headers": headers}));
    client.call("http/request", params).await;
    let request = web.request(0).await;
    assert_eq!(request.values("x-repeated"), ["a", "", "b, c"]);
    assert_eq!(request.values("accept"), ["text/html"]);
    let ours = ["x-second", "x-repeated", "accept", "x-first"];
    let names = request.headers.iter().map(|(name, _)| name.to_lowercase());
    let mut names: Vec<_> = names.filter(|name| ours.contains(&&**name)).collect();
    names.dedup();
    assert_eq!(names, ours);
    assert_eq!(request.values("x-first"), ["grün"]);
}

#[tokio::test]
async fn response_header_order_is_kept() {
    let (_server, client) = ready().await;
    let web = http_test_server::HttpTestServer::start(|_| {
        let mut response =
            b"HTTP/1.1 200 OK\r\nX-B: 1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n".to_vec();
        response.extend(b"X-A: gr\xfcn\r\nX-Empty: \r\nContent-Length: 0\r\n\r\n");
        vec![http_test_server::ResponseStep::Bytes(response)]
    })
    .await;
    let result = get(&client, &web.url("/")).await;
    let expected = [
        ("x-b", "1"),
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
        ("x-a", "grün"),
        ("x-empty", ""),
        ("content-length", "0"),
    ];
    let expected = expected.map(|(name, value)| json!({"name": name, "value": value}));
    assert_eq!(result["headers"], json!(expected));
}

#[tokio::test]
async fn header_value_comes_from_a_server_variable() {
    let server = outpost()
        .env("GITHUB_TOKEN", "t0ken")
        .env("EMPTY", "")
        .env("BROKEN", "a\nb")
        .env("OPENAI_API_KEY", "k3y")
        .env("openai_api_key", "k3y")
        .env("OUTPOST_SECRET_OF_SOMEBODY", "k3y")
        .start()
        .await;
    let client = server.client().await;
    let web =
        http_test_server::HttpTestServer::start(|_| http_test_server::page("200 OK", &[], b""))
            .await;
    let headers = json!([
        header("Authorization", "Bearer ", Some("GITHUB_TOKEN")),
        {"name": "X-Key", "valueEnvVar": "GITHUB_TOKEN"},
    ]);
    let params = get_params(&web.url("/"), json!({"headers": headers}));
    client.call("http/request", params).await;
    let request = web.request(0).await;
    assert_eq!(request.values("authorization"), ["Bearer t0ken"]);
    assert_eq!(request.values("x-key"), ["t0ken"]);

    let requires = "http/request header H requires executor environment variable NOT_THERE";
    let not_empty =
        "http/request header H requires a non-empty executor environment variable EMPTY";
    let cannot = "http/request header H cannot use executor environment variable";
    for (variable, message) in [
        ("NOT_THERE", requires.to_owned()),
        ("EMPTY", not_empty.to_owned()),
        ("OPENAI_API_KEY", format!("{cannot} OPENAI_API_KEY")),
        ("openai_api_key", format!("{cannot} openai_api_key")),
        (
            "Aws_Secret_Access_Key",
            format!("{cannot} Aws_Secret_Access_Key"),
        ),
        (
            "OUTPOST_SECRET_OF_SOMEBODY",
            format!("{cannot} OUTPOST_SECRET_OF_SOMEBODY"),
        ),
        ("outpost_", format!("{cannot} outpost_")),
        (
            "BROKEN",
            "http/request header H has a value that cannot be sent".to_owned(),
        ),
    ] {
        let headers = json!([header("H", "", Some(variable))]);
        let params = get_params(&web.url("/"), json!({"headers": headers}));
        let error = request_fails(&client, params).await;
        assert_eq!(error.parts(), (-32602, &*message));
    }
    assert_eq!(web.count(), 1, "nothing was sent");
}
