//! Tests streamed response bodies.

use outpost_testkit::{http_test_server, sh};
use serde_json::json;

use super::{get, get_params, request_fails, streamed, streaming, text, wait_for_bytes};
use crate::{over_each_transport, ready};

#[tokio::test]
async fn response_is_first_and_end_is_last() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        let web = http_test_server::HttpTestServer::start(|_| {
            http_test_server::page("200 OK", &["X-A: b"], &[7; 300_000])
        })
        .await;
        let id = client
            .request("http/request", streaming(&web.url("/"), "s"))
            .await;
        let result = client.response(id).await.expect("a response");
        assert_eq!(
            (&result["status"], &result["bodyBase64"]),
            (&json!(200), &json!(""))
        );
        let log = streamed(client, "s").await;
        assert_eq!((log.bytes, log.error), (vec![7; 300_000], None));
        let received = client.received();
        let place = |is: &dyn Fn(&serde_json::Value) -> bool| {
            received
                .iter()
                .position(|message| is(message))
                .expect("a process")
        };
        let response = place(&|message| message["id"] == id);
        let first = place(&|message| message["params"]["requestId"] == "s");
        assert!(response < first);
        // The id of a finished stream can be used again.
        let again = client
            .call("http/request", streaming(&web.url("/"), "t"))
            .await;
        assert_eq!(again["status"], 200);
        streamed(client, "t").await;
    })
    .await;
}

#[tokio::test]
async fn chunks_are_sent_as_they_arrive() {
    let (_server, client) = ready().await;
    let web = http_test_server::HttpTestServer::start(|_| {
        vec![
            http_test_server::head("200 OK", &["Transfer-Encoding: chunked"]),
            http_test_server::ResponseStep::Wait,
            http_test_server::chunk(b"one"),
            http_test_server::ResponseStep::Wait,
            http_test_server::chunk(b"two"),
            http_test_server::chunk(b""),
        ]
    })
    .await;
    client
        .call("http/request", streaming(&web.url("/"), "s"))
        .await;
    web.resume();
    assert_eq!(wait_for_bytes(&client, "s", 1).await, b"one");
    web.resume();
    let log = streamed(&client, "s").await;
    assert_eq!((log.pieces, log.error), (vec![3, 3], None));
}

#[tokio::test]
async fn empty_body_has_only_an_end() {
    let (_server, client) = ready().await;
    let web = http_test_server::HttpTestServer::start(|_| {
        http_test_server::page("204 No Content", &[], b"")
    })
    .await;
    client
        .call("http/request", streaming(&web.url("/"), "s"))
        .await;
    assert_eq!(streamed(&client, "s").await, super::Streamed::default());
}

#[tokio::test]
async fn truncated_stream_reports_an_error() {
    let (_server, client) = ready().await;
    let web = http_test_server::HttpTestServer::start(|_| {
        let head = http_test_server::head("200 OK", &["Content-Length: 10"]);
        vec![
            head,
            http_test_server::ResponseStep::Bytes(b"five.".to_vec()),
            http_test_server::ResponseStep::Close,
        ]
    })
    .await;
    client
        .call("http/request", streaming(&web.url("/"), "s"))
        .await;
    let log = streamed(&client, "s").await;
    assert_eq!(log.bytes, b"five.");
    let error = log.error.expect("an error");
    assert!(error.starts_with("the body ended early: "), "{error}");
}

#[tokio::test]
async fn request_id_is_unique_while_active() {
    let (server, client) = ready().await;
    let web = http_test_server::HttpTestServer::start(|request| match &*request.target {
        "/never" => vec![http_test_server::ResponseStep::Silence],
        "/failing" => vec![http_test_server::ResponseStep::Close],
        _ => vec![
            http_test_server::head("200 OK", &["Content-Length: 1"]),
            http_test_server::ResponseStep::Wait,
            http_test_server::ResponseStep::Bytes(vec![b'.']),
        ],
    })
    .await;
    client
        .call("http/request", streaming(&web.url("/"), "s"))
        .await;
    client
        .request("http/request", streaming(&web.url("/never"), "n"))
        .await;
    for id in ["s", "n"] {
        let error_text = format!("http/request streamResponse requestId `{id}` is already active");
        for params in [
            streaming(&web.url("/"), id),
            get_params(&web.url("/"), json!({"requestId": id})),
        ] {
            assert_eq!(
                request_fails(&client, params).await.parts(),
                (-32602, &*error_text)
            );
        }
    }
    // Request ids belong to one connection.
    let other = server.client().await;
    other
        .call("http/request", streaming(&web.url("/"), "s"))
        .await;
    web.resume();
    streamed(&client, "s").await;
    client
        .call("http/request", streaming(&web.url("/"), "s"))
        .await;
    // The id of a failed request can be used again.
    for _ in 0..2 {
        let error = request_fails(&client, streaming(&web.url("/failing"), "f")).await;
        assert_eq!(error.code, -32603);
    }
    // Requests that aren't streamed may share an id.
    let same = || get_params(&web.url("/never"), json!({"requestId": "same"}));
    let first = client.request("http/request", same()).await;
    let second = client.request("http/request", same()).await;
    client.check_alive().await;
    assert!(!client.has_response(first) && !client.has_response(second));
}

#[tokio::test]
async fn lost_connection_ends_only_its_streams() {
    let (server, client) = ready().await;
    let web = http_test_server::HttpTestServer::start(|_| {
        let head = http_test_server::head("200 OK", &["Content-Length: 10"]);
        vec![
            head,
            http_test_server::ResponseStep::Bytes(b"five.".to_vec()),
            http_test_server::ResponseStep::Wait,
            http_test_server::ResponseStep::Bytes(b"five.".to_vec()),
        ]
    })
    .await;
    let flood = http_test_server::HttpTestServer::start(|_| {
        vec![
            http_test_server::head("200 OK", &["Content-Length: 100000000"]),
            http_test_server::ResponseStep::Dots(100_000_000),
        ]
    })
    .await;
    let other = server.client().await;
    other
        .call("http/request", streaming(&web.url("/"), "s"))
        .await;
    client
        .call("http/request", streaming(&flood.url("/"), "s"))
        .await;
    wait_for_bytes(&client, "s", 1).await;
    client.cut().await;
    flood.wait_idle().await;
    web.resume();
    assert_eq!(streamed(&other, "s").await.bytes, b"five.five.");
}

#[tokio::test]
async fn acked_stream_respects_its_window() {
    let (_server, client) = ready().await;
    let size = 8_000_000;
    let web = http_test_server::HttpTestServer::start(move |_| {
        let length = format!("Content-Length: {size}");
        vec![
            http_test_server::head("200 OK", &[&length]),
            http_test_server::ResponseStep::Dots(size),
        ]
    })
    .await;
    let mut params = streaming(&web.url("/"), "s");
    params["acked"] = json!(true);
    client.call("http/request", params).await;
    let got = wait_for_bytes(&client, "s", 256 * 1024).await;
    // Later requests complete meanwhile, and the body stays blocked.
    client.run(sh("p", "echo hello")).await;
    assert!(got.len() < 320 * 1024, "{}", got.len());
    assert_eq!(wait_for_bytes(&client, "s", 1).await.len(), got.len());
    let mut acked = 0;
    let log = loop {
        let (last, log) = client
            .until("more to acknowledge", |seen| {
                let deltas = seen
                    .messages
                    .iter()
                    .filter(|message| message["params"]["requestId"] == "s");
                let last = deltas
                    .filter_map(|delta| delta["params"]["seq"].as_u64())
                    .max()?;
                (last > acked).then(|| (last, super::log(&seen.messages, "s")))
            })
            .await;
        if let Some(log) = log {
            break log;
        }
        acked = last;
        client
            .notify("http/request/ack", json!({"requestId": "s", "seq": acked}))
            .await;
    };
    assert_eq!((log.bytes.len() as u64, log.error), (size, None));
    // An acknowledgement of a finished stream is ignored.
    client
        .notify("http/request/ack", json!({"requestId": "s", "seq": 1}))
        .await;
    client.check_alive().await;
}

#[tokio::test]
async fn cancelled_stream_ends() {
    let (_server, client) = ready().await;
    let web = http_test_server::HttpTestServer::start(|request| match &*request.target {
        "/never" => vec![http_test_server::ResponseStep::Silence],
        _ => vec![
            http_test_server::head("200 OK", &["Content-Length: 100000000"]),
            http_test_server::ResponseStep::Dots(100_000_000),
        ],
    })
    .await;
    let mut params = streaming(&web.url("/"), "s");
    params["acked"] = json!(true);
    client.call("http/request", params).await;
    wait_for_bytes(&client, "s", 256 * 1024).await;
    client
        .notify("http/request/cancel", json!({"requestId": "s"}))
        .await;
    let log = streamed(&client, "s").await;
    assert_eq!(log.error.as_deref(), Some("it was cancelled"));
    web.wait_idle().await;
    let id = client
        .request("http/request", streaming(&web.url("/never"), "s"))
        .await;
    web.request(1).await;
    client
        .notify("http/request/cancel", json!({"requestId": "s"}))
        .await;
    let error = client.response(id).await.expect_err("an error");
    assert_eq!(
        error.parts(),
        (-32603, "http/request failed: it was cancelled")
    );
    web.wait_idle().await;
}

#[tokio::test]
async fn cancelled_whole_body_request_ends() {
    let (_server, client) = ready().await;
    let web = http_test_server::HttpTestServer::start(|request| match &*request.target {
        "/never" => vec![http_test_server::ResponseStep::Silence],
        _ => vec![
            http_test_server::head("200 OK", &["Content-Length: 100"]),
            http_test_server::ResponseStep::Bytes(b"half".to_vec()),
            http_test_server::ResponseStep::Silence,
        ],
    })
    .await;
    // Requests that aren't streamed may share an id; a cancel ends all of them.
    let mut requests = Vec::new();
    for (path, name) in [("/never", "r1"), ("/half", "r1"), ("/never", "r2")] {
        let params = get_params(&web.url(path), json!({"requestId": name}));
        requests.push(client.request("http/request", params).await);
        web.request(requests.len() - 1).await;
    }
    let error_text = "http/request failed: it was cancelled";
    for (name, ids) in [("r1", &requests[..2]), ("r2", &requests[2..])] {
        client
            .notify("http/request/cancel", json!({"requestId": name}))
            .await;
        for id in ids {
            let error = client.response(*id).await.expect_err("an error");
            assert_eq!(error.parts(), (-32603, error_text));
        }
        if name == "r1" {
            // The request with the other id goes on.
            web.wait_answering(1).await;
        }
    }
    web.wait_idle().await;
}

#[tokio::test]
async fn slow_stream_does_not_delay_other_requests() {
    let (_server, client) = ready().await;
    let size = 30_000_000;
    let web = http_test_server::HttpTestServer::start(move |request| match &*request.target {
        "/small" => http_test_server::page("200 OK", &[], b"small"),
        _ => {
            let length = format!("Content-Length: {size}");
            vec![
                http_test_server::head("200 OK", &[&length]),
                http_test_server::ResponseStep::Dots(size),
            ]
        }
    })
    .await;
    client
        .call("http/request", streaming(&web.url("/"), "s"))
        .await;
    // All of these complete between the pieces of the stream.
    client.run(sh("p", "echo hello")).await;
    assert_eq!(text(&get(&client, &web.url("/small")).await), "small");
    let over = super::log(&client.received(), "s").is_some();
    assert!(!over, "the body ended before other messages");
    assert_eq!(streamed(&client, "s").await.bytes.len() as u64, size);
}
