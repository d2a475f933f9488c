//! HTTP requests over lost connections and with older servers.

use std::time::Duration;

use outpost_client::{
    Error, Executor as _, HttpRequest, HttpResponse, RemoteExecutor, RemoteOptions,
};
use serde_json::{Value, json};

use crate::sim::{Sim, SimConnection, full_server, old_server, soon};

/// Makes a streamed request. Returns the response and the params of the request.
async fn request_streamed(
    remote: &RemoteExecutor,
    connection: &mut SimConnection,
) -> (HttpResponse, Value) {
    let serving = async {
        let asked = connection.expect_request("http/request").await;
        let head = json!({"status": 200, "headers": [], "bodyBase64": ""});
        connection.respond(&asked, head).await;
        asked["params"].clone()
    };
    let request = remote.http(HttpRequest::get("http://h/"));
    let (response, params) = tokio::join!(request, serving);
    (response.unwrap(), params)
}

async fn delta(connection: &mut SimConnection, params: &Value, seq: u64, bytes: &str, done: bool) {
    let params = json!({
        "requestId": params["requestId"], "seq": seq, "deltaBase64": bytes, "done": done, "error": null,
    });
    connection
        .send(json!({"method": "http/request/bodyDelta", "params": params}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn lost_connection_ends_a_body_with_an_error() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let (mut response, params) = request_streamed(&remote, &mut connection).await;
    delta(&mut connection, &params, 1, "YQ==", false).await;
    assert_eq!(response.body.next().await.unwrap().unwrap(), "a");
    delta(&mut connection, &params, 2, "Yg==", false).await;
    drop(connection);
    // Received pieces are still delivered.
    let second = soon("the second piece", response.body.next()).await;
    assert_eq!(second.unwrap().unwrap(), "b");
    let error = soon("the error", response.body.next())
        .await
        .unwrap()
        .unwrap_err();
    assert!(matches!(error, Error::Disconnected { .. }), "{error:?}");
    let words = "exec-server transport disconnected: the connection ended";
    assert_eq!(error.to_string(), words);
    assert!(response.body.next().await.is_none());
    // The executor reconnects, and sends nothing about the old body.
    let (mut connection, _) = sim.resumed(full_server()).await;
    drop(response);
    let (mut again, params) = request_streamed(&remote, &mut connection).await;
    delta(&mut connection, &params, 1, "Yw==", false).await;
    delta(&mut connection, &params, 2, "", true).await;
    assert_eq!(again.body.next().await.unwrap().unwrap(), "c");
    assert!(again.body.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn request_without_response_is_not_retried() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    for request in [
        HttpRequest::get("http://h/"),
        HttpRequest::get("http://h/").whole(),
    ] {
        let lose = async {
            connection.expect_request("http/request").await;
            drop(connection);
        };
        let (answer, ()) = tokio::join!(remote.http(request), lose);
        let error = answer.unwrap_err();
        assert!(matches!(error, Error::Disconnected { .. }), "{error:?}");
        connection = sim.resumed(full_server()).await.0;
        connection.expect_silence(Duration::from_secs(20)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn read_pieces_are_acknowledged_and_dropped_bodies_cancelled() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let (mut response, params) = request_streamed(&remote, &mut connection).await;
    assert_eq!(params["acked"], true);
    let piece = "AAAA".repeat(12_000);
    delta(&mut connection, &params, 1, &piece, false).await;
    delta(&mut connection, &params, 2, &piece, false).await;
    connection.expect_silence(Duration::from_secs(5)).await;
    response.body.next().await.unwrap().unwrap();
    connection.expect_silence(Duration::from_secs(5)).await;
    response.body.next().await.unwrap().unwrap();
    let ack = connection.expect_notification("http/request/ack").await;
    assert_eq!(ack, json!({"requestId": params["requestId"], "seq": 2}));
    drop(response);
    let cancel = connection.expect_notification("http/request/cancel").await;
    assert_eq!(cancel, json!({"requestId": params["requestId"]}));
    // Later pieces are ignored.
    delta(&mut connection, &params, 3, &piece, false).await;
    connection.expect_silence(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn dropped_whole_request_is_cancelled() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let whole = || HttpRequest::get("http://h/").whole();
    let asked = tokio::select! {
        _ = remote.http(whole()) => panic!("there is no response"),
        asked = connection.expect_request("http/request") => asked,
    };
    let name = &asked["params"]["requestId"];
    let cancel = connection.expect_notification("http/request/cancel").await;
    assert_eq!(cancel, json!({"requestId": name}));
    // A request with a response is not cancelled.
    for refused in [true, false] {
        let serving = async {
            let asked = connection.expect_request("http/request").await;
            assert_ne!(&asked["params"]["requestId"], name);
            match refused {
                true => connection.reject(&asked, -32603, "no").await,
                false => {
                    let head = json!({"status": 200, "headers": [], "bodyBase64": "YQ=="});
                    connection.respond(&asked, head).await;
                }
            }
        };
        let (response, ()) = tokio::join!(remote.http(whole()), serving);
        assert_eq!(response.is_err(), refused);
    }
    connection.expect_silence(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn older_server_gets_no_unknown_notifications() {
    let mut sim = Sim::new();
    let mut options = RemoteOptions::default();
    options.limits.push_window_bytes = 100_000;
    let (remote, mut connection) = sim.connect_with(options, old_server()).await;
    let (mut response, params) = request_streamed(&remote, &mut connection).await;
    assert_eq!(params.get("acked"), None, "{params}");
    let piece = "AAAA".repeat(12_000);
    for seq in 1..5 {
        delta(&mut connection, &params, seq, &piece, false).await;
        response.body.next().await.unwrap().unwrap();
    }
    drop(response);
    let (mut response, params) = request_streamed(&remote, &mut connection).await;
    // The server does not wait for acknowledgements, and the buffer is limited.
    for seq in 1..9 {
        delta(&mut connection, &params, seq, &piece, false).await;
    }
    for _ in 0..2 {
        response.body.next().await.unwrap().unwrap();
    }
    let error = response.body.next().await.unwrap().unwrap_err();
    assert!(
        matches!(error, Error::BodyTooLarge { most: 100_000 }),
        "{error:?}"
    );
    connection.expect_silence(Duration::from_secs(20)).await;
    tokio::select! {
        _ = remote.http(HttpRequest::get("http://h/").whole()) => panic!("there is no response"),
        _ = connection.expect_request("http/request") => {}
    }
    connection.expect_silence(Duration::from_secs(20)).await;
}

#[tokio::test(start_paused = true)]
async fn missing_pieces_are_an_error() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let (mut response, params) = request_streamed(&remote, &mut connection).await;
    delta(&mut connection, &params, 2, "YQ==", false).await;
    let error = response.body.next().await.unwrap().unwrap_err();
    assert!(
        matches!(
            error,
            Error::BodyGap {
                expected: 1,
                seq: 2
            }
        ),
        "{error:?}"
    );
}
