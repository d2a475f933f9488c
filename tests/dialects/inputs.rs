//! `process/writeStdin` and `command/exec/write`.

use outpost_testkit::base64;
use serde_json::json;

use super::face::{Face, everywhere};

#[tokio::test]
async fn what_is_written_arrives_in_order_and_the_end_behind_it() {
    everywhere(async |face, _, client| {
        let run = face
            .begin(client, "p", "cat; echo over", json!({"streamStdin": true}))
            .await;
        let mut expected = String::new();
        let mut requests = Vec::new();
        for number in 0..200 {
            let line = format!("line {number}\n");
            let params = face.about("p", json!({"deltaBase64": base64(&line)}));
            requests.push(client.request(face.write(), params).await);
            expected += &line;
        }
        let last = json!({"deltaBase64": base64("last\n"), "closeStdin": true});
        requests.push(client.request(face.write(), face.about("p", last)).await);
        for request in requests {
            assert_eq!(client.answer(request).await, Ok(json!({})));
        }
        assert_eq!(run.end(client).await.stdout, expected + "last\nover\n");
    })
    .await;
}

#[tokio::test]
async fn the_end_may_come_alone_and_again_but_nothing_behind_it() {
    everywhere(async |face, _, client| {
        let more = json!({"streamStdin": true, "streamStdoutStderr": true});
        let script = "cat; echo over; exec sleep 1000";
        let run = face.begin(client, "p", script, more).await;
        let close = face.about("p", json!({"closeStdin": true}));
        assert_eq!(client.call(face.write(), close.clone()).await, json!({}));
        face.sees(client, "p", "over").await;
        assert_eq!(client.call(face.write(), close).await, json!({}));
        for close in [false, true] {
            let more = json!({"deltaBase64": base64("x"), "closeStdin": close});
            let error = client.fails(face.write(), face.about("p", more)).await;
            assert_eq!(error.parts(), (-32600, "stdin is already closed"));
        }
        client.call(face.kill(), face.about("p", json!({}))).await;
        assert_eq!(run.end(client).await.exit_code, 137);
    })
    .await;
}

#[tokio::test]
async fn without_streaming_there_is_none() {
    everywhere(async |face, _, client| {
        let more = json!({"streamStdoutStderr": true});
        let script = "read x || echo none; exec sleep 1000";
        let run = face.begin(client, "p", script, more).await;
        face.sees(client, "p", "none").await;
        let expected = match face {
            Face::Spawn => "stdin streaming is not enabled for this process",
            Face::Command => "stdin streaming is not enabled for this command/exec",
        };
        for more in [json!({"deltaBase64": ""}), json!({"closeStdin": true})] {
            let error = client.fails(face.write(), face.about("p", more)).await;
            assert_eq!(error.parts(), (-32600, expected));
        }
        client.call(face.kill(), face.about("p", json!({}))).await;
        run.end(client).await;
    })
    .await;
}

#[tokio::test]
async fn one_of_the_two_is_required_and_base64_is_base64() {
    everywhere(async |face, _, client| {
        let run = face
            .begin(client, "p", "cat", json!({"streamStdin": true}))
            .await;
        for more in [json!({}), json!({"deltaBase64": null, "closeStdin": false})] {
            let error = client.fails(face.write(), face.about("p", more)).await;
            let expected = format!("{} requires deltaBase64 or closeStdin", face.write());
            assert_eq!(error.parts(), (-32602, &*expected));
        }
        for text in ["!", "YQ", "YQ===", "a b="] {
            let more = json!({"deltaBase64": text, "closeStdin": true});
            let error = client.fails(face.write(), face.about("p", more)).await;
            assert_eq!(error.code, -32602);
            assert!(
                error.message.starts_with("invalid deltaBase64: "),
                "{error:?}"
            );
        }
        // Nothing of that has reached it.
        let last = json!({"deltaBase64": base64("fine"), "closeStdin": true});
        client.call(face.write(), face.about("p", last)).await;
        assert_eq!(run.end(client).await.stdout, "fine");
    })
    .await;
}

#[tokio::test]
async fn who_is_unknown_takes_none() {
    everywhere(async |face, _, client| {
        let more = json!({"deltaBase64": "YQ=="});
        let error = client.fails(face.write(), face.about("H", more)).await;
        assert_eq!(error.parts(), (-32600, &*face.unknown("H")));
    })
    .await;
}
