//! What can't be understood costs its sender an error and nothing else.

use outpost_testkit::{Client, RpcError, Transport, base64, frames, sh};
use serde_json::{Value, json};

use crate::{over_each_transport, ready};

pub(super) const ON_A_WEBSOCKET: &str =
    "failed to parse websocket JSON-RPC message from exec-server websocket";
pub(super) const ON_STDIO: &str = "failed to parse JSON-RPC message from exec-server stdio";

fn words(transport: Transport) -> &'static str {
    match transport {
        Transport::WebSocket | Transport::Unix => ON_A_WEBSOCKET,
        Transport::Stdio => ON_STDIO,
    }
}

/// The nth malformed message was answered as it has to be.
async fn refused(client: &Client, nth: usize, words: &str) {
    let answer = client.unasked(nth).await;
    let error = RpcError::of(&answer);
    assert_eq!(answer["id"], -1, "{answer}");
    assert_eq!(error.code, -32600, "{answer}");
    assert!(error.message.starts_with(words), "{answer}");
}

#[tokio::test]
async fn garbage_is_answered_in_the_words_of_the_transport_and_survived() {
    over_each_transport(async |server, client| {
        let garbage = [
            "not-json",
            "{",
            "nul",
            "[]",
            "42",
            "\"text\"",
            "null",
            "{}",
            r#"{"id":1}"#,
            r#"{"result":1}"#,
            r#"{"id":1,"method":7}"#,
            r#"{"id":1,"method":"environment/status"} trailing"#,
            r#"[{"id":1,"method":"environment/status"}]"#,
            r#"{"id":1,"method":"environment/status","params":{"a":01}}"#,
            "{'id':1}",
        ];
        for (nth, text) in garbage.iter().enumerate() {
            client.send_text(text).await;
            refused(client, nth, words(server.transport())).await;
        }
        client.shake_hands().await;
        client.is_alive().await;
    })
    .await;
}

#[tokio::test]
async fn a_bad_message_costs_itself_and_not_its_neighbours() {
    over_each_transport(async |server, client| {
        client.shake_hands().await;
        client
            .send_text(r#"{"id":1001,"method":"environment/status"}"#)
            .await;
        client.send_text("oops").await;
        client
            .send_text(r#"{"id":1002,"method":"environment/status"}"#)
            .await;
        refused(client, 0, words(server.transport())).await;
        assert!(client.answer(1001).await.is_ok());
        assert!(client.answer(1002).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn bytes_that_are_not_utf8_are_malformed() {
    over_each_transport(async |server, client| {
        let text: &[u8] = b"{\"id\":1,\"method\":\"environment/\xff\xfe\"}";
        if server.transport() == Transport::Stdio {
            client.send_bytes(&[text, b"\n"].concat()).await;
        } else {
            client.send_frames(vec![frames::binary(text)]).await;
        }
        refused(client, 0, words(server.transport())).await;
        client.shake_hands().await;
    })
    .await;
}

#[tokio::test]
async fn a_repeated_key_is_malformed_wherever_it_is() {
    let (_server, client) = ready().await;
    let messages = [
        r#"{"id":1,"id":2,"method":"environment/status"}"#,
        r#"{"id":1,"method":"environment/status","method":"environment/status"}"#,
        r#"{"id":1,"method":"environment/status","params":{"a":1,"a":1}}"#,
        r#"{"id":1,"method":"environment/status","params":{"a":[{"b":{"c":1,"c":2}}]}}"#,
        r#"{"id":1,"\u0069d":2,"method":"environment/status"}"#,
        r#"{"id":1,"method":"environment/status","unknown":{"x":1,"y":2,"x":3}}"#,
    ];
    for (nth, message) in messages.iter().enumerate() {
        client.send_text(message).await;
        refused(&client, nth, ON_A_WEBSOCKET).await;
    }
    let twice_but_apart =
        r#"{"id":1001,"method":"environment/status","params":{"id":[{"a":1},{"a":2}]}}"#;
    client.send_text(twice_but_apart).await;
    assert!(client.answer(1001).await.is_ok());
}

#[tokio::test]
async fn a_key_repeated_among_thousands_is_found() {
    let (_server, client) = ready().await;
    let keys = |last: &str| {
        let members: Vec<_> = (0..5000).map(|n| format!("\"k{n}\":0")).collect();
        let members = members.join(",");
        format!(r#"{{"id":1001,"method":"environment/status","params":{{{members},"{last}":0}}}}"#)
    };
    client.send_text(&keys("k17")).await;
    refused(&client, 0, ON_A_WEBSOCKET).await;
    client.send_text(&keys("other")).await;
    assert!(client.answer(1001).await.is_ok());
}

#[tokio::test]
async fn nesting_without_end_is_refused_and_survived() {
    let (_server, client) = ready().await;
    let deep = "[".repeat(1_000_000);
    client
        .send_text(&format!(r#"{{"id":1,"method":"x","params":{deep}"#))
        .await;
    refused(&client, 0, ON_A_WEBSOCKET).await;
    client.is_alive().await;
}

/// A request with so many values besides the few of its own.
fn request_with_values(id: i64, values: usize) -> String {
    let zeros = vec!["0"; values].join(",");
    format!(r#"{{"id":{id},"method":"environment/status","params":{{}},"pad":[{zeros}]}}"#)
}

#[tokio::test]
async fn a_message_may_hold_a_quarter_of_a_million_values_and_no_more() {
    over_each_transport(async |server, client| {
        client.shake_hands().await;
        client.send_text(&request_with_values(1001, 262_100)).await;
        assert!(client.answer(1001).await.is_ok());
        client.send_text(&request_with_values(1002, 262_144)).await;
        refused(client, 0, words(server.transport())).await;
        client.is_alive().await;
    })
    .await;
}

#[tokio::test]
async fn a_json_bomb_is_refused_in_bounded_memory() {
    let (server, client) = ready().await;
    let before = server.vitals().peak_rss_kib();
    let bombs = [
        request_with_values(1, 8_000_000),
        format!(
            r#"{{"id":1,"method":"environment/status","params":{}}}"#,
            "[[],".repeat(100) + &"{},".repeat(4_000_000) + "0" + &"]".repeat(100)
        ),
    ];
    let longest = bombs.iter().map(String::len).max().unwrap_or(0) as u64;
    for (nth, bomb) in bombs.iter().enumerate() {
        client.send_text(bomb).await;
        refused(&client, nth, ON_A_WEBSOCKET).await;
    }
    let grown = server.vitals().peak_rss_kib() - before;
    assert!(grown < longest / 1024 * 3, "grew by {grown} KiB");
    client.is_alive().await;
}

#[tokio::test]
async fn params_of_the_wrong_type_are_32602() {
    let (_server, client) = ready().await;
    let start = |change: Value| {
        let mut params =
            json!({"processId": "p", "argv": ["true"], "cwd": "file:///tmp", "env": {}});
        for (name, value) in change.as_object().expect("an object") {
            params[name] = value.clone();
        }
        params
    };
    let about = |change: Value| {
        let mut params = json!({"processId": "p"});
        for (name, value) in change.as_object().expect("an object") {
            params[name] = value.clone();
        }
        params
    };
    let wrong = [
        ("process/start", json!([])),
        ("process/start", json!("text")),
        ("process/start", json!({})),
        ("process/start", json!({"processId": "p"})),
        ("process/start", start(json!({"processId": 7}))),
        ("process/start", start(json!({"argv": "true"}))),
        ("process/start", start(json!({"argv": [1]}))),
        ("process/start", start(json!({"argv": null}))),
        ("process/start", start(json!({"cwd": 1}))),
        ("process/start", start(json!({"cwd": null}))),
        ("process/start", start(json!({"env": []}))),
        ("process/start", start(json!({"env": {"A": 1}}))),
        ("process/start", start(json!({"env": {"A": null}}))),
        ("process/start", start(json!({"tty": "yes"}))),
        ("process/start", start(json!({"tty": 1}))),
        ("process/start", start(json!({"pipeStdin": "no"}))),
        ("process/start", start(json!({"arg0": 0}))),
        ("process/start", start(json!({"envPolicy": "all"}))),
        (
            "process/start",
            start(json!({"envPolicy": {"inherit": "some"}})),
        ),
        ("process/start", start(json!({"sandbox": "none"}))),
        ("process/start", start(json!({"metadata": {"a": 1}}))),
        ("process/start", start(json!({"metadata": "m"}))),
        ("process/start", start(json!({"timeoutMs": -1}))),
        ("process/start", start(json!({"timeoutMs": "1s"}))),
        ("process/start", start(json!({"retainBytes": 1.5}))),
        ("process/start", start(json!({"killGraceMs": -5}))),
        (
            "process/start",
            start(json!({"tty": true, "size": {"rows": 24}})),
        ),
        (
            "process/start",
            start(json!({"tty": true, "size": {"rows": -1, "cols": 80}})),
        ),
        (
            "process/start",
            start(json!({"tty": true, "size": {"rows": 65536, "cols": 80}})),
        ),
        (
            "process/start",
            start(json!({"tty": true, "size": [24, 80]})),
        ),
        ("process/read", json!({})),
        ("process/read", about(json!({"afterSeq": -1}))),
        ("process/read", about(json!({"afterSeq": "1"}))),
        ("process/read", about(json!({"maxBytes": -1}))),
        ("process/read", about(json!({"waitMs": 0.5}))),
        ("process/write", json!({"processId": "p"})),
        ("process/write", about(json!({"chunk": 1}))),
        ("process/write", about(json!({"chunk": "***"}))),
        (
            "process/write",
            about(json!({"chunk": base64("x"), "writeId": 5})),
        ),
        (
            "process/write",
            about(json!({"chunk": base64("x"), "closeStdin": "yes"})),
        ),
        ("process/signal", json!({"processId": "p"})),
        ("process/signal", about(json!({"signal": 9}))),
        ("process/terminate", json!({})),
        ("process/terminate", about(json!({"graceMs": -1}))),
        ("process/terminate", about(json!({"tree": 1}))),
        ("process/resize", json!({"processId": "p"})),
        ("process/resize", about(json!({"size": {"rows": 1}}))),
    ];
    client.start(sh("p", "read x").stdin()).await;
    for (method, params) in wrong {
        let error = client.fails(method, params.clone()).await;
        assert_eq!(error.code, -32602, "{method} {params}: {}", error.message);
    }
    let list = client.call("process/list", json!({})).await;
    assert_eq!(list["processes"].as_array().map(Vec::len), Some(1));
    client.end("p").await;
}
