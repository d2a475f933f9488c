//! `fs/open`, `fs/readBlock`, `fs/close`.

use std::fs;

use outpost_testkit::Client;
use serde_json::{Value, json};

use super::{decoded, fifo, file, invalid, missing, refused, uri};
use crate::{over_each_transport, ready};

async fn block(client: &Client, handle: &str, offset: u64, len: u64) -> (Vec<u8>, bool) {
    let params = json!({"handleId": handle, "offset": offset, "len": len});
    let block = client.call("fs/readBlock", params).await;
    (decoded(&block["chunk"]), block["eof"].as_bool().unwrap())
}

fn unknown(handle: &str) -> (i64, String) {
    (-32004, format!("unknown file read handle `{handle}`"))
}

#[tokio::test]
async fn blocks_of_an_open_file() {
    over_each_transport(async |server, client| {
        client.shake_hands().await;
        let path = file(server, "a", "0123456789");
        let open = json!({"handleId": "h", "path": uri(&path), "sandbox": null});
        assert_eq!(client.call("fs/open", open).await, json!({"handleId": "h"}));
        assert_eq!(block(client, "h", 5, 5).await, (b"56789".to_vec(), false));
        assert_eq!(block(client, "h", 10, 5).await, (Vec::new(), true));
        assert_eq!(
            block(client, "h", 0, 20).await,
            (b"0123456789".to_vec(), true)
        );
        assert_eq!(block(client, "h", u64::MAX, 1).await, (Vec::new(), true));
        // Whatever becomes of the path.
        fs::rename(file(server, "b", "other"), &path).unwrap();
        assert_eq!(block(client, "h", 0, 3).await, (b"012".to_vec(), false));
        let close = json!({"handleId": "h"});
        assert_eq!(client.call("fs/close", close.clone()).await, json!({}));
        assert_eq!(
            client.call("fs/close", close).await,
            json!({}),
            "closed is closed"
        );
        let read = json!({"handleId": "h", "offset": 0, "len": 1});
        assert_eq!(refused(client, "fs/readBlock", read).await, unknown("h"));
    })
    .await;
}

#[tokio::test]
async fn lengths_have_a_limit() {
    let (server, client) = ready().await;
    let path = file(&server, "a", vec![1; 1_100_000]);
    let open = json!({"handleId": "h", "path": uri(&path)});
    client.call("fs/open", open).await;
    let (bytes, eof) = block(&client, "h", 0, 1_048_576).await;
    assert_eq!((bytes.len(), eof), (1_048_576, false));
    let words = "file read block length must be between 1 and 1048576";
    let lengths = [
        json!(0),
        json!(-1),
        json!(i64::MIN),
        json!(1_048_577),
        json!(u64::MAX),
    ];
    for len in lengths {
        let params = json!({"handleId": "h", "offset": 0, "len": len});
        assert_eq!(
            refused(&client, "fs/readBlock", params).await,
            invalid(words)
        );
    }
}

#[tokio::test]
async fn names_are_the_clients_own() {
    let (server, client) = ready().await;
    let path = uri(&file(&server, "a", "a"));
    let open = |handle: &str| json!({"handleId": handle, "path": path});
    let longest = "h".repeat(32);
    client.call("fs/open", open(&longest)).await;
    let words = format!("file read handle `{longest}` already exists");
    assert_eq!(
        refused(&client, "fs/open", open(&longest)).await,
        invalid(&words)
    );
    let words = "handleId must be at most 32 bytes long";
    let too_long = "h".repeat(33);
    assert_eq!(
        refused(&client, "fs/open", open(&too_long)).await,
        invalid(words)
    );
    // Another connection knows nothing of them.
    let other = server.client().await;
    let read = json!({"handleId": longest, "offset": 0, "len": 1});
    assert_eq!(
        refused(&other, "fs/readBlock", read).await,
        unknown(&longest)
    );
    other.call("fs/open", open(&longest)).await;
}

#[tokio::test]
async fn a_failed_open_leaves_its_name_free() {
    let (server, client) = ready().await;
    let nowhere = json!({"handleId": "h", "path": uri(&server.folder().join("no"))});
    assert_eq!(refused(&client, "fs/open", nowhere).await, missing());
    let pipe = json!({"handleId": "h", "path": uri(&fifo(&server, "fifo"))});
    let words = "path is not a regular file";
    assert_eq!(refused(&client, "fs/open", pipe).await, invalid(words));
    let open = json!({"handleId": "h", "path": uri(&file(&server, "a", "a"))});
    client.call("fs/open", open).await;
}

#[tokio::test]
async fn a_hundred_and_twenty_eight_may_be_open() {
    let (server, client) = ready().await;
    let path = uri(&file(&server, "a", "hello"));
    let open = |number: usize| json!({"handleId": number.to_string(), "path": path});
    for number in 0..128 {
        client.call("fs/open", open(number)).await;
    }
    let words = "at most 128 file reads may be open per connection";
    assert_eq!(refused(&client, "fs/open", open(128)).await, invalid(words));
    let stream = json!({"handleId": "s", "path": uri(&server.folder().join("new"))});
    assert_eq!(
        refused(&client, "fs/createStream", stream).await,
        invalid(words)
    );
    assert_eq!(
        block(&client, "127", 0, 5).await,
        (b"hello".to_vec(), false)
    );
    // The place is free at once.
    let close = client.request("fs/close", json!({"handleId": "5"})).await;
    client.call("fs/open", open(128)).await;
    assert_eq!(client.answer(close).await, Ok(json!({})));
}

#[tokio::test]
async fn requests_about_a_handle_take_effect_as_they_were_sent() {
    let (server, client) = ready().await;
    let path = uri(&file(&server, "a", "0123456789"));
    let mut answers = Vec::new();
    for round in 0..30_u64 {
        let open = json!({"handleId": "h", "path": path});
        answers.push(client.request("fs/open", open).await);
        let read = json!({"handleId": "h", "offset": round % 10, "len": 1});
        answers.push(client.request("fs/readBlock", read).await);
        // Control passes what waits, so the answers are awaited before it.
        for id in answers.drain(..) {
            client.answer(id).await.unwrap();
        }
        client.call("fs/close", json!({"handleId": "h"})).await;
    }
    // In one go: the close may come before the read, and never before the open.
    let open = client
        .request("fs/open", json!({"handleId": "h", "path": path}))
        .await;
    let close = client.request("fs/close", json!({"handleId": "h"})).await;
    assert_eq!(client.answer(open).await, Ok(json!({"handleId": "h"})));
    assert_eq!(client.answer(close).await, Ok(json!({})));
    let read = json!({"handleId": "h", "offset": 0, "len": 1});
    assert_eq!(refused(&client, "fs/readBlock", read).await, unknown("h"));
}

#[tokio::test]
async fn what_was_open_is_closed_with_the_connection() {
    let (server, client) = ready().await;
    let path = file(&server, "a", "hello").canonicalize().unwrap();
    let open = json!({"handleId": "h", "path": uri(&path)});
    client.call("fs/open", open).await;
    let descriptors = format!("/proc/{}/fd", server.pid());
    let is_open = || {
        let links = fs::read_dir(&descriptors).unwrap();
        let mut links = links.filter_map(|link| fs::read_link(link.ok()?.path()).ok());
        links.any(|target| target == path)
    };
    assert!(is_open());
    drop(client);
    outpost_testkit::patience::seen("the end of the open file", || (!is_open()).then_some(()))
        .await;
    let value: Value = server
        .client()
        .await
        .call("environment/status", json!({}))
        .await;
    assert_eq!(value, json!({"status": "ready"}));
}
