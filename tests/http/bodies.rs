//! A request and its response, each in one piece.

use outpost_testkit::{base64, web};
use serde_json::json;

use super::{asking, body, get, text};
use crate::{over_each_transport, ready};

#[tokio::test]
async fn over_each_transport_what_was_asked_comes_back() {
    over_each_transport(async |_, client| {
        client.shake_hands().await;
        let web = web::Web::start(|_| web::page("201 Created", &["X-A: b"], b"made")).await;
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
        let asked = web.asked(0).await;
        assert_eq!(
            (&*asked.method, &*asked.target),
            ("POST", "/things?of=mine")
        );
        assert_eq!(asked.body, b"a thing");
        assert_eq!(asked.values("content-type"), ["text/plain"]);
        assert_eq!(asked.values("host"), [web.address().to_string()]);
    })
    .await;
}

#[tokio::test]
async fn little_has_to_be_said() {
    let (_server, client) = ready().await;
    let web = web::Web::start(|_| web::page("200 OK", &[], b"")).await;
    let params = json!({"method": "DELETE", "url": web.url("")});
    let result = client.call("http/request", params).await;
    assert_eq!((&result["status"], &*text(&result)), (&json!(200), ""));
    let asked = web.asked(0).await;
    assert_eq!((&*asked.method, &*asked.target), ("DELETE", "/"));
    assert!(asked.values("content-length").is_empty(), "{asked:?}");
}

#[tokio::test]
async fn bytes_come_as_they_were_sent() {
    let (_server, client) = ready().await;
    let all: Vec<u8> = (0..=255).collect();
    let web = web::Web::start(|asked| match &*asked.target {
        // Nothing is decompressed, be it what it says it is or not.
        "/zipped" => web::page("200 OK", &["Content-Encoding: gzip"], b"\x1f\x8bno gzip"),
        "/chunked" => vec![
            web::head("200 OK", &["Transfer-Encoding: chunked"]),
            web::chunk(b"one "),
            web::chunk(b"two"),
            web::chunk(b""),
        ],
        "/until-the-end" => vec![
            web::head("200 OK", &[]),
            web::Say::Bytes(b"all".to_vec()),
            web::Say::Close,
        ],
        _ => web::page("404 Not Found", &[], &asked.body),
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
    assert!(web.asked(0).await.values("accept-encoding").is_empty());
    assert_eq!(text(&get(&client, &web.url("/chunked")).await), "one two");
    assert_eq!(text(&get(&client, &web.url("/until-the-end")).await), "all");
    let echo = asking(
        &web.url("/x"),
        json!({"method": "PUT", "bodyBase64": base64(&all)}),
    );
    let echoed = client.call("http/request", echo).await;
    assert_eq!((&echoed["status"], body(&echoed)), (&json!(404), all));
}

#[tokio::test]
async fn a_body_that_breaks_off_is_no_body() {
    let (_server, client) = ready().await;
    let web = web::Web::start(|_| {
        let head = web::head("200 OK", &["Content-Length: 100"]);
        vec![
            head,
            web::Say::Bytes(b"ten bytes.".to_vec()),
            web::Say::Close,
        ]
    })
    .await;
    let error = super::refusal(&client, asking(&web.url("/"), json!({}))).await;
    assert_eq!(error.code, -32603);
    let words = "http/request failed: the body broke off: ";
    assert!(error.message.starts_with(words), "{error:?}");
    assert!(error.message.len() > words.len(), "{error:?}");
}

#[tokio::test]
async fn a_client_that_goes_takes_its_request_along() {
    let (server, client) = ready().await;
    let web = web::Web::start(|_| vec![web::Say::Silence]).await;
    client
        .request("http/request", asking(&web.url("/"), json!({})))
        .await;
    web.asked(0).await;
    client.cut().await;
    web.all_over().await;
    server.client().await.is_alive().await;
}

#[tokio::test]
async fn connections_are_used_again() {
    let (_server, client) = ready().await;
    let web = web::Web::start(|asked| {
        let port = asked.values("x-port").join("");
        web::page("200 OK", &[], port.as_bytes())
    })
    .await;
    for _ in 0..3 {
        get(&client, &web.url("/")).await;
    }
    assert_eq!((web.count(), web.open()), (3, 1));
}
