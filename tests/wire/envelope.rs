//! Tests the four kinds of JSON-RPC messages.

use outpost_testkit::{RpcError, sh};
use serde_json::{Value, json};

use crate::{over_each_transport, ready};

fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object().expect("an object");
    let mut keys: Vec<_> = object.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn messages_have_exactly_the_members_of_their_shape() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        client.run(sh("p", "echo hello")).await;
        client
            .call_fails("process/read", json!({"processId": "unknown"}))
            .await;
        for message in client.received() {
            match keys(&message)[..] {
                ["id", "result"] | ["method", "params"] => {}
                ["error", "id"] => assert_eq!(keys(&message["error"]), ["code", "data", "message"]),
                _ => panic!("{message}"),
            }
        }
        assert_eq!(client.received().len(), 2 + 3 + 1);
    })
    .await;
}

#[tokio::test]
async fn jsonrpc_member_is_ignored() {
    let (_server, client) = ready().await;
    for (id, version) in [json!("2.0"), json!("1.0"), json!(17), json!(null)]
        .into_iter()
        .enumerate()
    {
        let id = id + 1000;
        client
            .send(&json!({"jsonrpc": version, "id": id, "method": "environment/status"}))
            .await;
        let response = client.response_message(id).await;
        assert_eq!(response, json!({"id": id, "result": {"status": "ready"}}));
    }
}

#[tokio::test]
async fn id_is_echoed_unchanged() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        let ids = [
            json!(0),
            json!(-1),
            json!(-7),
            json!(9_007_199_254_740_993_i64),
            json!(i64::MAX),
            json!(i64::MIN),
            json!("abc"),
            json!(""),
            json!("7"),
            json!("ünï \"quoted\" \n \u{0} ☃"),
        ];
        for id in ids {
            client
                .send(&json!({"id": id, "method": "environment/status", "params": {}}))
                .await;
            let response = client.response_message(id.clone()).await;
            assert_eq!(response, json!({"id": id, "result": {"status": "ready"}}));
        }
    })
    .await;
}

#[tokio::test]
async fn other_id_types_are_rejected() {
    let (_server, client) = ready().await;
    for (nth, id) in [json!(1.5), json!(true), json!([1]), json!({}), json!(1e300)]
        .into_iter()
        .enumerate()
    {
        client
            .send(&json!({"id": id, "method": "environment/status"}))
            .await;
        assert_eq!(
            RpcError::parse(&client.error_without_id(nth).await).code,
            -32600
        );
    }
    client.check_alive().await;
}

#[tokio::test]
async fn params_may_be_absent() {
    let (_server, client) = ready().await;
    client
        .send_text(r#"{"id":1001,"method":"process/list"}"#)
        .await;
    let response = client.response(1001).await;
    assert_eq!(response, Ok(json!({"processes": []})));
    client
        .send_text(r#"{"id":1002,"method":"process/read"}"#)
        .await;
    assert_eq!(client.response(1002).await.unwrap_err().code, -32602);
}

#[tokio::test]
async fn unknown_members_are_ignored() {
    let (_server, client) = ready().await;
    let start = sh("p", "stty size")
        .tty()
        .with("whatever", json!({"deep": [1, 2, {"er": null}]}))
        .with("size", json!({"rows": 5, "cols": 6, "depth": 7}))
        .with("envPolicy", json!({"inherit": "none", "novelty": true}));
    let log = client.run(start).await;
    assert_eq!(log.text(), "5 6\r\n");
    client
        .send(&json!({
            "id": 1001,
            "method": "environment/status",
            "params": {"surplus": 1},
            "extra": {"anything": []},
        }))
        .await;
    assert!(client.response(1001).await.is_ok());
}

#[tokio::test]
async fn trace_context_is_accepted() {
    let (_server, client) = ready().await;
    let traces = [
        json!({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}),
        json!({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
               "tracestate": "vendor=value"}),
        json!({"traceparent": null, "tracestate": null}),
        json!({}),
        json!(null),
    ];
    for trace in traces {
        let id = client.fresh_id();
        client
            .send(&json!({"id": id, "method": "environment/status", "trace": trace}))
            .await;
        let response = client.response(id).await;
        assert_eq!(response, Ok(json!({"status": "ready"})), "{trace}");
    }
}

#[tokio::test]
async fn method_with_id_is_a_request() {
    let (_server, client) = ready().await;
    client
        .send(&json!({"id": 1001, "method": "environment/status", "result": {}, "error": {}}))
        .await;
    let response = client.response(1001).await;
    assert_eq!(response, Ok(json!({"status": "ready"})));
}

#[tokio::test]
async fn method_without_id_is_a_notification() {
    let (_server, client) = ready().await;
    client
        .send(&json!({"method": "environment/status", "result": {}}))
        .await;
    let error = RpcError::parse(&client.error_without_id(0).await);
    let expected = "unexpected notification method: environment/status";
    assert_eq!(error.parts(), (-32600, expected));
}

#[tokio::test]
async fn unexpected_response_is_answered() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        let messages = [
            json!({"id": 5, "result": {"x": 1}}),
            json!({"id": "five", "result": null}),
            json!({"id": 5, "error": {"code": -1, "message": "no"}}),
            json!({"id": 5, "error": {"code": -1, "message": "no", "data": [1, 2]}}),
        ];
        for (nth, message) in messages.iter().enumerate() {
            client.send(message).await;
            let response = client.error_without_id(nth).await;
            assert_eq!(RpcError::parse(&response).code, -32600, "{message}");
        }
        client.check_alive().await;
    })
    .await;
}

#[tokio::test]
async fn unknown_method_is_32601() {
    let (_server, client) = ready().await;
    for method in ["no/such", "", "process/", "process/START", "initialized"] {
        let error = client.call_fails(method, json!({})).await;
        assert_eq!(error.code, -32601, "{method}");
    }
}
