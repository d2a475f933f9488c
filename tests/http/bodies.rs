//! Tests requests and responses with unstreamed bodies.

use outpost_testkit::{base64, http_test_server};
use serde_json::json;

use super::{body, get, get_params, text};
use crate::{over_each_transport, ready};

#[tokio::test]
async fn body_round_trips_over_each_transport() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        let web = http_test_server::HttpTestServer::start(|_| {
            http_test_server::page("201 Created", &["X-A: b"], b"made")
        })
        .await;
        let params = json!({
            "method": "POST",
            "url": web.url("/things?of=mine#here"),
            "headers": [{"name": "Content-Type", "value": "text/plain", "valueEnvVar": null}],
            "bodyBase64": base64(b"a thing"),
            "timeoutMs": null,
            "redirectPolicy": "follow",
            "requestId": "r1",
            "streamResponse": false,
        });
        let result = client.call("http/request", params).await;
        assert_eq!(
            result,
            json!({
                "status": 201,
                "headers": [
                    {"name": "x-a", "value": "b"},
                    {"name": "content-length", "value": "4"},
                ],
                "bodyBase64": base64(b"made"),
            })
        );
        let request = web.request(0).await;
        assert_eq!(
            (&*request.method, &*request.target),
            ("POST", "/things?of=mine")
        );
        assert_eq!(request.body, b"a thing");
        assert_eq!(request.values("content-type"), ["text/plain"]);
        assert_eq!(request.values("host"), [web.address().to_string()]);
    })
    .await;
}

#[tokio::test]
async fn minimal_request_succeeds() {
    let (_server, client) = ready().await;
    let web =
        http_test_server::HttpTestServer::start(|_| http_test_server::page("200 OK", &[], b""))
            .await;
    let params = json!({"method": "DELETE", "url": web.url("")});
    let result = client.call("http/request", params).await;
    assert_eq!((&result["status"], &*text(&result)), (&json!(200), ""));
    let request = web.request(0).await;
    assert_eq!((&*request.method, &*request.target), ("DELETE", "/"));
    assert!(request.values("content-length").is_empty(), "{request:?}");
}

#[tokio::test]
async fn binary_body_is_unchanged() {
    let (_server, client) = ready().await;
    let all: Vec<u8> = (0..=255).collect();
    let web = http_test_server::HttpTestServer::start(|request| match &*request.target {
        // Nothing is decompressed, whether it is valid or not.
        "/zipped" => {
            http_test_server::page("200 OK", &["Content-Encoding: gzip"], b"\x1f\x8bno gzip")
        }
        "/chunked" => vec![
            http_test_server::head("200 OK", &["Transfer-Encoding: chunked"]),
            http_test_server::chunk(b"one "),
            http_test_server::chunk(b"two"),
            http_test_server::chunk(b""),
        ],
        "/until-the-end" => vec![
            http_test_server::head("200 OK", &[]),
            http_test_server::ResponseStep::Bytes(b"all".to_vec()),
            http_test_server::ResponseStep::Close,
        ],
        _ => http_test_server::page("404 Not Found", &[], &request.body),
    })
    .await;
    let zipped = get(&client, &web.url("/zipped")).await;
    assert_eq!(body(&zipped), b"\x1f\x8bno gzip");
    let encoding = json!({"name": "content-encoding", "value": "gzip"});
    assert!(
        zipped["headers"]
            .as_array()
            .expect("headers")
            .contains(&encoding)
    );
    assert!(web.request(0).await.values("accept-encoding").is_empty());
    assert_eq!(text(&get(&client, &web.url("/chunked")).await), "one two");
    assert_eq!(text(&get(&client, &web.url("/until-the-end")).await), "all");
    let echo = get_params(
        &web.url("/x"),
        json!({"method": "PUT", "bodyBase64": base64(&all)}),
    );
    let echoed = client.call("http/request", echo).await;
    assert_eq!((&echoed["status"], body(&echoed)), (&json!(404), all));
}

#[tokio::test]
async fn truncated_body_is_an_error() {
    let (_server, client) = ready().await;
    let web = http_test_server::HttpTestServer::start(|_| {
        let head = http_test_server::head("200 OK", &["Content-Length: 100"]);
        vec![
            head,
            http_test_server::ResponseStep::Bytes(b"ten bytes.".to_vec()),
            http_test_server::ResponseStep::Close,
        ]
    })
    .await;
    let error = super::request_fails(&client, get_params(&web.url("/"), json!({}))).await;
    assert_eq!(error.code, -32603);
    let message = "http/request failed: the body ended early: ";
    assert!(error.message.starts_with(message), "{error:?}");
    assert!(error.message.len() > message.len(), "{error:?}");
}

#[tokio::test]
async fn lost_client_cancels_its_request() {
    let (server, client) = ready().await;
    let web =
        http_test_server::HttpTestServer::start(|_| vec![http_test_server::ResponseStep::Silence])
            .await;
    client
        .request("http/request", get_params(&web.url("/"), json!({})))
        .await;
    web.request(0).await;
    client.cut().await;
    web.wait_idle().await;
    server.client().await.check_alive().await;
}

#[tokio::test]
async fn connections_are_reused() {
    let (_server, client) = ready().await;
    let web = http_test_server::HttpTestServer::start(|request| {
        let port = request.values("x-port").join("");
        http_test_server::page("200 OK", &[], port.as_bytes())
    })
    .await;
    for _ in 0..3 {
        get(&client, &web.url("/")).await;
    }
    assert_eq!((web.count(), web.open()), (3, 1));
}
