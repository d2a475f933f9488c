//! Tests `process/write`.

use outpost_testkit::{Start, base64, sh};
use serde_json::json;

use crate::{over_each_transport, ready};

#[tokio::test]
async fn writes_arrive_in_order() {
    over_each_transport(async |_, client| {
        client.handshake().await;
        client.start(Start::new("p", &["cat"]).stdin()).await;
        let mut requests = Vec::new();
        for n in 0..300 {
            let text = format!("{n}\n");
            requests.push(client.request_write("p", text, &format!("w{n}")).await);
        }
        for request in requests {
            assert_eq!(
                client.response(request).await,
                Ok(json!({"status": "accepted"}))
            );
        }
        assert_eq!(client.write_last("p", "end").await, "accepted");
        let expected: String = (0..300).map(|n| format!("{n}\n")).collect();
        assert_eq!(client.closed("p").await.text(), expected + "end");
    })
    .await;
}

#[tokio::test]
async fn write_id_is_written_once() {
    let (_server, client) = ready().await;
    for (id, tty) in [("pipes", false), ("pty", true)] {
        let start = sh(id, "stty -echo 2>/dev/null; echo ready; cat")
            .stdin()
            .with("tty", tty);
        client.start(start).await;
        client.wait_output(id, "ready").await;
        for _ in 0..3 {
            assert_eq!(client.write(id, "once\n", "w1").await, "accepted");
        }
        assert_eq!(
            client.write(id, "other bytes, same id\n", "w1").await,
            "accepted"
        );
        assert_eq!(client.write(id, "two\n", "w2").await, "accepted");
        assert_eq!(client.write(id, "once\n", "w1").await, "accepted");
        assert_eq!(client.write(id, "three\n", "w3").await, "accepted");
        let log = client.wait_output(id, "three").await;
        let text = log.text().replace('\r', "");
        assert_eq!(text, "ready\nonce\ntwo\nthree\n", "{id}");
        client.terminate_and_wait(id).await;
    }
}

#[tokio::test]
async fn retries_in_flight_are_written_once() {
    let (_server, client) = ready().await;
    client.start(Start::new("p", &["cat"]).stdin()).await;
    let mut requests = Vec::new();
    for n in 0..200 {
        for _ in 0..2 {
            let text = format!("{n}\n");
            requests.push(client.request_write("p", text, &format!("w{n}")).await);
        }
    }
    for request in requests {
        assert_eq!(
            client.response(request).await,
            Ok(json!({"status": "accepted"}))
        );
    }
    client.write_last("p", "").await;
    let expected: String = (0..200).map(|n| format!("{n}\n")).collect();
    assert_eq!(client.closed("p").await.text(), expected);
}

#[tokio::test]
async fn write_id_belongs_to_its_process() {
    let (_server, client) = ready().await;
    for id in ["one", "other"] {
        client.start(Start::new(id, &["cat"]).stdin()).await;
        assert_eq!(
            client.write(id, format!("to {id}\n"), "same").await,
            "accepted"
        );
    }
    for id in ["one", "other"] {
        client.wait_output(id, &format!("to {id}\n")).await;
        client.terminate_and_wait(id).await;
    }
}

#[tokio::test]
async fn newest_4096_write_ids_are_remembered() {
    let (_server, client) = ready().await;
    client.start(Start::new("p", &["cat"]).stdin()).await;
    let count = 4097;
    let mut requests = Vec::new();
    for n in 0..count {
        let text = format!("{n}\n");
        requests.push(client.request_write("p", text, &format!("w{n}")).await);
        if requests.len() == 500 || n == count - 1 {
            for request in requests.drain(..) {
                assert_eq!(
                    client.response(request).await,
                    Ok(json!({"status": "accepted"}))
                );
            }
        }
    }
    for number in [4096, 1] {
        let id = format!("w{number}");
        assert_eq!(client.write("p", "remembered\n", &id).await, "accepted");
    }
    assert_eq!(client.write("p", "forgotten\n", "w0").await, "accepted");
    client.write_last("p", "").await;
    let expected: String = (0..count).map(|n| format!("{n}\n")).collect();
    assert_eq!(client.closed("p").await.text(), expected + "forgotten\n");
}

#[tokio::test]
async fn write_without_an_id_is_never_a_retry() {
    let (_server, client) = ready().await;
    client.start(Start::new("p", &["cat"]).stdin()).await;
    for _ in 0..3 {
        let params = json!({"processId": "p", "chunk": base64("again\n")});
        assert_eq!(
            client.call("process/write", params).await,
            json!({"status": "accepted"})
        );
        let params = json!({"processId": "p", "chunk": base64("again\n"), "writeId": null});
        assert_eq!(
            client.call("process/write", params).await,
            json!({"status": "accepted"})
        );
    }
    client.write_last("p", "").await;
    assert_eq!(client.closed("p").await.text(), "again\n".repeat(6));
}

#[tokio::test]
async fn write_id_must_not_be_empty() {
    let (_server, client) = ready().await;
    client.start(Start::new("p", &["cat"]).stdin()).await;
    for id in ["p", "unknown"] {
        let params = json!({"processId": id, "chunk": base64("x"), "writeId": ""});
        let error = client.call_fails("process/write", params).await;
        assert_eq!(error.parts(), (-32602, "writeId must not be empty"));
    }
    client.write_last("p", "").await;
    assert_eq!(client.closed("p").await.text(), "");
}

#[tokio::test]
async fn chunk_must_be_base64() {
    let (_server, client) = ready().await;
    client.start(Start::new("p", &["cat"]).stdin()).await;
    for chunk in [
        "***", "x", "eA", "eA=", "eA===", "eB==", "eA==\n", " eA==", "e-_=", "ü",
    ] {
        let params = json!({"processId": "p", "chunk": chunk, "writeId": "w"});
        let error = client.call_fails("process/write", params).await;
        assert_eq!(error.code, -32602, "{chunk:?}");
    }
    // A rejected write doesn't use up its id.
    assert_eq!(client.write("p", "good", "w").await, "accepted");
    client.write_last("p", "").await;
    assert_eq!(client.closed("p").await.text(), "good");
}

#[tokio::test]
async fn unknown_process_is_a_status() {
    let (_server, client) = ready().await;
    assert_eq!(client.write("unknown", "x", "w").await, "unknownProcess");
}

#[tokio::test]
async fn every_byte_value_arrives() {
    let (_server, client) = ready().await;
    let bytes: Vec<u8> = (0..=255).collect();
    for length in [0, 1, 2, 3, 255, 256] {
        let id = format!("p{length}");
        client.start(Start::new(&id, &["cat"]).stdin()).await;
        assert_eq!(client.write_last(&id, &bytes[..length]).await, "accepted");
        assert_eq!(client.closed(&id).await.output(), bytes[..length]);
    }
}
