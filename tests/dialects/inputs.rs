//! Tests `process/writeStdin` and `command/exec/write`.

use outpost_testkit::base64;
use serde_json::json;

use super::dialect::{Dialect, with_every_dialect};

#[tokio::test]
async fn writes_arrive_in_order_before_the_end() {
    with_every_dialect(async |dialect, _, client| {
        let run = dialect
            .begin(client, "p", "cat; echo over", json!({"streamStdin": true}))
            .await;
        let mut expected = String::new();
        let mut requests = Vec::new();
        for number in 0..200 {
            let line = format!("line {number}\n");
            let params = dialect.params_for("p", json!({"deltaBase64": base64(&line)}));
            requests.push(client.request(dialect.write(), params).await);
            expected += &line;
        }
        let last = json!({"deltaBase64": base64("last\n"), "closeStdin": true});
        requests.push(
            client
                .request(dialect.write(), dialect.params_for("p", last))
                .await,
        );
        for request in requests {
            assert_eq!(client.response(request).await, Ok(json!({})));
        }
        assert_eq!(run.end(client).await.stdout, expected + "last\nover\n");
    })
    .await;
}

#[tokio::test]
async fn end_is_idempotent_and_rejects_later_bytes() {
    with_every_dialect(async |dialect, _, client| {
        let more = json!({"streamStdin": true, "streamStdoutStderr": true});
        let script = "cat; echo over; exec sleep 1000";
        let run = dialect.begin(client, "p", script, more).await;
        let close = dialect.params_for("p", json!({"closeStdin": true}));
        assert_eq!(client.call(dialect.write(), close.clone()).await, json!({}));
        dialect.wait_output(client, "p", "over").await;
        assert_eq!(client.call(dialect.write(), close).await, json!({}));
        for close in [false, true] {
            let more = json!({"deltaBase64": base64("x"), "closeStdin": close});
            let error = client
                .call_fails(dialect.write(), dialect.params_for("p", more))
                .await;
            assert_eq!(error.parts(), (-32600, "stdin is already closed"));
        }
        client
            .call(dialect.kill(), dialect.params_for("p", json!({})))
            .await;
        assert_eq!(run.end(client).await.exit_code, 137);
    })
    .await;
}

#[tokio::test]
async fn input_needs_streaming() {
    with_every_dialect(async |dialect, _, client| {
        let more = json!({"streamStdoutStderr": true});
        let script = "read x || echo none; exec sleep 1000";
        let run = dialect.begin(client, "p", script, more).await;
        dialect.wait_output(client, "p", "none").await;
        let expected = match dialect {
            Dialect::Spawn => "stdin streaming is not enabled for this process",
            Dialect::Command => "stdin streaming is not enabled for this command/exec",
        };
        for more in [json!({"deltaBase64": ""}), json!({"closeStdin": true})] {
            let error = client
                .call_fails(dialect.write(), dialect.params_for("p", more))
                .await;
            assert_eq!(error.parts(), (-32600, expected));
        }
        client
            .call(dialect.kill(), dialect.params_for("p", json!({})))
            .await;
        run.end(client).await;
    })
    .await;
}

#[tokio::test]
async fn write_needs_bytes_or_end_in_valid_base64() {
    with_every_dialect(async |dialect, _, client| {
        let run = dialect
            .begin(client, "p", "cat", json!({"streamStdin": true}))
            .await;
        for more in [json!({}), json!({"deltaBase64": null, "closeStdin": false})] {
            let error = client
                .call_fails(dialect.write(), dialect.params_for("p", more))
                .await;
            let expected = format!("{} requires deltaBase64 or closeStdin", dialect.write());
            assert_eq!(error.parts(), (-32602, &*expected));
        }
        for text in ["!", "YQ", "YQ===", "a b="] {
            let more = json!({"deltaBase64": text, "closeStdin": true});
            let error = client
                .call_fails(dialect.write(), dialect.params_for("p", more))
                .await;
            assert_eq!(error.code, -32602);
            assert!(
                error.message.starts_with("invalid deltaBase64: "),
                "{error:?}"
            );
        }
        // None of the rejected bytes reached the process.
        let last = json!({"deltaBase64": base64("fine"), "closeStdin": true});
        client
            .call(dialect.write(), dialect.params_for("p", last))
            .await;
        assert_eq!(run.end(client).await.stdout, "fine");
    })
    .await;
}

#[tokio::test]
async fn unknown_process_rejects_input() {
    with_every_dialect(async |dialect, _, client| {
        let more = json!({"deltaBase64": "YQ=="});
        let error = client
            .call_fails(dialect.write(), dialect.params_for("H", more))
            .await;
        assert_eq!(error.parts(), (-32600, &*dialect.unknown("H")));
    })
    .await;
}
