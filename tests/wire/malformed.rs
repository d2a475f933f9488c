//! Tests that a malformed message costs its sender an error and nothing else.

use outpost_testkit::{Client, RpcError, Transport, base64, frames, sh};
use serde_json::{Value, json};

use crate::{over_each_transport, ready};

pub(super) const WEBSOCKET_PARSE_ERROR: &str =
    "failed to parse websocket JSON-RPC message from exec-server websocket";
pub(super) const STDIO_PARSE_ERROR: &str =
    "failed to parse JSON-RPC message from exec-server stdio";

fn parse_error(transport: Transport) -> &'static str {
    match transport {
        Transport::WebSocket | Transport::Unix => WEBSOCKET_PARSE_ERROR,
        Transport::Stdio => STDIO_PARSE_ERROR,
    }
}

/// Checks the error response to the nth malformed message.
async fn check_error(client: &Client, nth: usize, error_text: &str) {
    let response = client.error_without_id(nth).await;
    let error = RpcError::parse(&response);
    assert_eq!(response["id"], -1, "{response}");
    assert_eq!(error.code, -32600, "{response}");
    assert!(error.message.starts_with(error_text), "{response}");
}

#[tokio::test]
async fn garbage_is_answered_in_the_transports_words() {
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
            check_error(client, nth, parse_error(server.transport())).await;
        }
        client.handshake().await;
        client.check_alive().await;
    })
    .await;
}

#[tokio::test]
async fn bad_message_does_not_affect_its_neighbours() {
    over_each_transport(async |server, client| {
        client.handshake().await;
        client
            .send_text(r#"{"id":1001,"method":"environment/status"}"#)
            .await;
        client.send_text("oops").await;
        client
            .send_text(r#"{"id":1002,"method":"environment/status"}"#)
            .await;
        check_error(client, 0, parse_error(server.transport())).await;
        assert!(client.response(1001).await.is_ok());
        assert!(client.response(1002).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn invalid_utf8_is_malformed() {
    over_each_transport(async |server, client| {
        let text: &[u8] = b"{\"id\":1,\"method\":\"environment/\xff\xfe\"}";
        if server.transport() == Transport::Stdio {
            client.send_bytes(&[text, b"\n"].concat()).await;
        } else {
            client.send_frames(vec![frames::binary(text)]).await;
        }
        check_error(client, 0, parse_error(server.transport())).await;
        client.handshake().await;
    })
    .await;
}

#[tokio::test]
async fn repeated_key_is_malformed_at_any_depth() {
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
        check_error(&client, nth, WEBSOCKET_PARSE_ERROR).await;
    }
    let twice_but_apart =
        r#"{"id":1001,"method":"environment/status","params":{"id":[{"a":1},{"a":2}]}}"#;
    client.send_text(twice_but_apart).await;
    assert!(client.response(1001).await.is_ok());
}

#[tokio::test]
async fn repeated_key_among_thousands_is_found() {
    let (_server, client) = ready().await;
    let keys = |last: &str| {
        let members: Vec<_> = (0..5000).map(|n| format!("\"k{n}\":0")).collect();
        let members = members.join(",");
        format!(r#"{{"id":1001,"method":"environment/status","params":{{{members},"{last}":0}}}}"#)
    };
    client.send_text(&keys("k17")).await;
    check_error(&client, 0, WEBSOCKET_PARSE_ERROR).await;
    client.send_text(&keys("other")).await;
    assert!(client.response(1001).await.is_ok());
}

#[tokio::test]
async fn deep_nesting_is_rejected() {
    let (_server, client) = ready().await;
    let deep = "[".repeat(1_000_000);
    client
        .send_text(&format!(r#"{{"id":1,"method":"x","params":{deep}"#))
        .await;
    check_error(&client, 0, WEBSOCKET_PARSE_ERROR).await;
    client.check_alive().await;
}

/// A request with this many additional JSON values.
fn request_with_values(id: i64, values: usize) -> String {
    let zeros = vec!["0"; values].join(",");
    format!(r#"{{"id":{id},"method":"environment/status","params":{{}},"pad":[{zeros}]}}"#)
}

#[tokio::test]
async fn message_may_hold_262144_values() {
    over_each_transport(async |server, client| {
        client.handshake().await;
        client.send_text(&request_with_values(1001, 262_100)).await;
        assert!(client.response(1001).await.is_ok());
        client.send_text(&request_with_values(1002, 262_144)).await;
        check_error(client, 0, parse_error(server.transport())).await;
        client.check_alive().await;
    })
    .await;
}

#[tokio::test]
async fn json_bomb_is_rejected_in_bounded_memory() {
    let (server, client) = ready().await;
    let before = server.stats().peak_rss_kib();
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
        check_error(&client, nth, WEBSOCKET_PARSE_ERROR).await;
    }
    let grown = server.stats().peak_rss_kib() - before;
    assert!(grown < longest / 1024 * 3, "grew by {grown} KiB");
    client.check_alive().await;
}

#[tokio::test]
async fn wrong_param_types_are_32602() {
    let (_server, client) = ready().await;
    let start = |change: Value| {
        let mut params =
            json!({"processId": "p", "argv": ["true"], "cwd": "file:///tmp", "env": {}});
        for (name, value) in change.as_object().expect("an object") {
            params[name] = value.clone();
        }
        params
    };
    let params_for = |change: Value| {
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
        (
            "process/start",
            start(json!({"metadata": {"threadId": "t"}})),
        ),
        (
            "process/start",
            start(json!({"metadata": {"toolCallId": 1}})),
        ),
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
        ("process/read", params_for(json!({"afterSeq": -1}))),
        ("process/read", params_for(json!({"afterSeq": "1"}))),
        ("process/read", params_for(json!({"maxBytes": -1}))),
        ("process/read", params_for(json!({"waitMs": 0.5}))),
        ("process/write", json!({"processId": "p"})),
        ("process/write", params_for(json!({"chunk": 1}))),
        ("process/write", params_for(json!({"chunk": "***"}))),
        (
            "process/write",
            params_for(json!({"chunk": base64("x"), "writeId": 5})),
        ),
        (
            "process/write",
            params_for(json!({"chunk": base64("x"), "closeStdin": "yes"})),
        ),
        ("process/signal", json!({"processId": "p"})),
        ("process/signal", params_for(json!({"signal": 9}))),
        ("process/terminate", json!({})),
        ("process/terminate", params_for(json!({"graceMs": -1}))),
        ("process/terminate", params_for(json!({"tree": 1}))),
        ("process/resize", json!({"processId": "p"})),
        ("process/resize", params_for(json!({"size": {"rows": 1}}))),
    ];
    client.start(sh("p", "read x").stdin()).await;
    for (method, params) in wrong {
        let error = client.call_fails(method, params.clone()).await;
        assert_eq!(error.code, -32602, "{method} {params}: {}", error.message);
    }
    let list = client.call("process/list", json!({})).await;
    assert_eq!(list["processes"].as_array().map(Vec::len), Some(1));
    client.terminate_and_wait("p").await;
}
