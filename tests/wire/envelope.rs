//! The four shapes of a message.

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
async fn what_is_sent_has_the_members_of_its_shape_and_no_others() {
    over_each_transport(async |_, client| {
        client.shake_hands().await;
        client.run(sh("p", "echo hello")).await;
        client
            .fails("process/read", json!({"processId": "nobody"}))
            .await;
        for message in client.received() {
            match keys(&message)[..] {
                ["id", "result"] | ["method", "params"] => {}
                ["error", "id"] => assert_eq!(keys(&message["error"]), ["code", "message"]),
                _ => panic!("{message}"),
            }
        }
        assert_eq!(client.received().len(), 2 + 3 + 1);
    })
    .await;
}

#[tokio::test]
async fn a_jsonrpc_member_is_accepted_and_ignored() {
    let (_server, client) = ready().await;
    for (id, version) in [json!("2.0"), json!("1.0"), json!(17), json!(null)]
        .into_iter()
        .enumerate()
    {
        let id = id + 1000;
        client
            .send(&json!({"jsonrpc": version, "id": id, "method": "environment/status"}))
            .await;
        let answer = client.answer_message(id).await;
        assert_eq!(answer, json!({"id": id, "result": {"status": "ready"}}));
    }
}

#[tokio::test]
async fn an_id_comes_back_as_it_was_sent() {
    over_each_transport(async |_, client| {
        client.shake_hands().await;
        let ids = [
            json!(0),
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
            let answer = client.answer_message(id.clone()).await;
            assert_eq!(answer, json!({"id": id, "result": {"status": "ready"}}));
        }
    })
    .await;
}

#[tokio::test]
async fn an_id_that_is_no_string_and_no_integer_is_refused() {
    let (_server, client) = ready().await;
    for (nth, id) in [json!(1.5), json!(true), json!([1]), json!({}), json!(1e300)]
        .into_iter()
        .enumerate()
    {
        client
            .send(&json!({"id": id, "method": "environment/status"}))
            .await;
        assert_eq!(RpcError::of(&client.unasked(nth).await).code, -32600);
    }
    client.is_alive().await;
}

#[tokio::test]
async fn params_may_be_absent() {
    let (_server, client) = ready().await;
    client
        .send_text(r#"{"id":1001,"method":"process/list"}"#)
        .await;
    let answer = client.answer(1001).await;
    assert_eq!(answer, Ok(json!({"processes": []})));
    client
        .send_text(r#"{"id":1002,"method":"process/read"}"#)
        .await;
    assert_eq!(client.answer(1002).await.unwrap_err().code, -32602);
}

#[tokio::test]
async fn unknown_members_are_ignored_everywhere() {
    let (_server, client) = ready().await;
    let start = sh("p", "stty size")
        .tty()
        .with("whatever", json!({"deep": [1, 2, {"er": null}]}))
        .with("size", json!({"rows": 5, "cols": 6, "depth": 7}))
        .with("envPolicy", json!({"inherit": "none", "novelty": true}));
    let story = client.run(start).await;
    assert_eq!(story.text(), "5 6\r\n");
    client
        .send(&json!({
            "id": 1001,
            "method": "environment/status",
            "params": {"surplus": 1},
            "extra": {"anything": []},
        }))
        .await;
    assert!(client.answer(1001).await.is_ok());
}

#[tokio::test]
async fn a_trace_context_is_accepted() {
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
        let answer = client.answer(id).await;
        assert_eq!(answer, Ok(json!({"status": "ready"})), "{trace}");
    }
}

#[tokio::test]
async fn method_and_id_make_a_request_whatever_else_is_there() {
    let (_server, client) = ready().await;
    client
        .send(&json!({"id": 1001, "method": "environment/status", "result": {}, "error": {}}))
        .await;
    let answer = client.answer(1001).await;
    assert_eq!(answer, Ok(json!({"status": "ready"})));
}

#[tokio::test]
async fn a_method_without_an_id_is_a_notification_whatever_else_is_there() {
    let (_server, client) = ready().await;
    client
        .send(&json!({"method": "environment/status", "result": {}}))
        .await;
    let error = RpcError::of(&client.unasked(0).await);
    let expected = "unexpected notification method: environment/status";
    assert_eq!(error.parts(), (-32600, expected));
}

#[tokio::test]
async fn a_response_nobody_asked_for_is_answered_and_the_connection_goes_on() {
    over_each_transport(async |_, client| {
        client.shake_hands().await;
        let messages = [
            json!({"id": 5, "result": {"x": 1}}),
            json!({"id": "five", "result": null}),
            json!({"id": 5, "error": {"code": -1, "message": "no"}}),
            json!({"id": 5, "error": {"code": -1, "message": "no", "data": [1, 2]}}),
        ];
        for (nth, message) in messages.iter().enumerate() {
            client.send(message).await;
            let answer = client.unasked(nth).await;
            assert_eq!(RpcError::of(&answer).code, -32600, "{message}");
        }
        client.is_alive().await;
    })
    .await;
}

#[tokio::test]
async fn an_unknown_method_is_32601() {
    let (_server, client) = ready().await;
    for method in ["no/such", "", "process/", "process/START", "initialized"] {
        let error = client.fails(method, json!({})).await;
        assert_eq!(error.code, -32601, "{method}");
    }
}
