//! HTTP requests over connections that are lost, and of servers that can do less.

use std::time::Duration;

use outpost_client::{
    Error, HttpRequest, HttpResponse, Place as _, Remote, RemoteLimits, RemoteOptions,
};
use serde_json::{Value, json};

use crate::sim::{Sim, SimLine, capable, released, soon};

/// A response whose body is streamed, and the request it is for.
async fn asked(remote: &Remote, line: &mut SimLine) -> (HttpResponse, Value) {
    let serving = async {
        let asked = line.asked_for("http/request").await;
        let head = json!({"status": 200, "headers": [], "bodyBase64": ""});
        line.answer(&asked, head).await;
        asked["params"].clone()
    };
    let request = remote.http(HttpRequest::get("http://h/"));
    let (response, params) = tokio::join!(request, serving);
    (response.unwrap(), params)
}

async fn delta(line: &mut SimLine, params: &Value, seq: u64, bytes: &str, done: bool) {
    let params = json!({
        "requestId": params["requestId"], "seq": seq, "deltaBase64": bytes, "done": done, "error": null,
    });
    line.send(json!({"method": "http/request/bodyDelta", "params": params}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_ends_a_body_at_once_and_with_an_error() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let (mut response, params) = asked(&remote, &mut line).await;
    delta(&mut line, &params, 1, "YQ==", false).await;
    assert_eq!(response.body.next().await.unwrap().unwrap(), "a");
    delta(&mut line, &params, 2, "Yg==", false).await;
    drop(line);
    // What had come is not lost.
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
    // The place itself comes back, and nothing is said of the old body there.
    let (mut line, _) = sim.resumed(capable()).await;
    drop(response);
    let (mut again, params) = asked(&remote, &mut line).await;
    delta(&mut line, &params, 1, "Yw==", false).await;
    delta(&mut line, &params, 2, "", true).await;
    assert_eq!(again.body.next().await.unwrap().unwrap(), "c");
    assert!(again.body.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_answer_is_lost_is_not_made_again() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    for request in [
        HttpRequest::get("http://h/"),
        HttpRequest::get("http://h/").whole(),
    ] {
        let lose = async {
            line.asked_for("http/request").await;
            drop(line);
        };
        let (answer, ()) = tokio::join!(remote.http(request), lose);
        let error = answer.unwrap_err();
        assert!(matches!(error, Error::Disconnected { .. }), "{error:?}");
        line = sim.resumed(capable()).await.0;
        line.is_quiet_for(Duration::from_secs(20)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_is_acknowledged_and_what_is_not_wanted_cancelled() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let (mut response, params) = asked(&remote, &mut line).await;
    assert_eq!(params["acked"], true);
    let piece = "AAAA".repeat(12_000);
    delta(&mut line, &params, 1, &piece, false).await;
    delta(&mut line, &params, 2, &piece, false).await;
    line.is_quiet_for(Duration::from_secs(5)).await;
    response.body.next().await.unwrap().unwrap();
    line.is_quiet_for(Duration::from_secs(5)).await;
    response.body.next().await.unwrap().unwrap();
    let ack = line.said("http/request/ack").await;
    assert_eq!(ack, json!({"requestId": params["requestId"], "seq": 2}));
    drop(response);
    let cancel = line.said("http/request/cancel").await;
    assert_eq!(cancel, json!({"requestId": params["requestId"]}));
    // What comes all the same is nobody's.
    delta(&mut line, &params, 3, &piece, false).await;
    line.is_quiet_for(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_in_one_piece_is_cancelled_too_if_nobody_waits() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(capable()).await;
    let whole = || HttpRequest::get("http://h/").whole();
    let asked = tokio::select! {
        _ = remote.http(whole()) => panic!("there is no response"),
        asked = line.asked_for("http/request") => asked,
    };
    let name = &asked["params"]["requestId"];
    let cancel = line.said("http/request/cancel").await;
    assert_eq!(cancel, json!({"requestId": name}));
    // One that was answered is over, however it was.
    for refused in [true, false] {
        let serving = async {
            let asked = line.asked_for("http/request").await;
            assert_ne!(&asked["params"]["requestId"], name);
            match refused {
                true => line.refuse(&asked, -32603, "no").await,
                false => {
                    let head = json!({"status": 200, "headers": [], "bodyBase64": "YQ=="});
                    line.answer(&asked, head).await;
                }
            }
        };
        let (response, ()) = tokio::join!(remote.http(whole()), serving);
        assert_eq!(response.is_err(), refused);
    }
    line.is_quiet_for(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_released_server_hears_nothing_it_does_not_know() {
    let mut sim = Sim::new();
    let options = RemoteOptions {
        limits: RemoteLimits {
            push_window_bytes: 100_000,
            ..RemoteLimits::default()
        },
        ..RemoteOptions::default()
    };
    let (remote, mut line) = sim.connect_with(options, released()).await;
    let (mut response, params) = asked(&remote, &mut line).await;
    assert_eq!(params.get("acked"), None, "{params}");
    let piece = "AAAA".repeat(12_000);
    for seq in 1..5 {
        delta(&mut line, &params, seq, &piece, false).await;
        response.body.next().await.unwrap().unwrap();
    }
    drop(response);
    let (mut response, params) = asked(&remote, &mut line).await;
    // It waits for nobody, and we have no room for all it says.
    for seq in 1..9 {
        delta(&mut line, &params, seq, &piece, false).await;
    }
    for _ in 0..2 {
        response.body.next().await.unwrap().unwrap();
    }
    let error = response.body.next().await.unwrap().unwrap_err();
    assert!(
        matches!(error, Error::BodyTooLarge { most: 100_000 }),
        "{error:?}"
    );
    line.is_quiet_for(Duration::from_secs(20)).await;
    tokio::select! {
        _ = remote.http(HttpRequest::get("http://h/").whole()) => panic!("there is no response"),
        _ = line.asked_for("http/request") => {}
    }
    line.is_quiet_for(Duration::from_secs(20)).await;
}

#[tokio::test(start_paused = true)]
async fn pieces_that_are_missing_are_an_error() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let (mut response, params) = asked(&remote, &mut line).await;
    delta(&mut line, &params, 2, "YQ==", false).await;
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
