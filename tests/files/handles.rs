//! Tests `fs/open`, `fs/readBlock` and `fs/close`.

use std::fs;

use outpost_testkit::Client;
use serde_json::{Value, json};

use super::{decoded, error_of, fifo, file, invalid, not_found, uri};
use crate::{over_each_transport, ready};

async fn block(client: &Client, handle: &str, offset: u64, len: u64) -> (Vec<u8>, bool) {
    let params = json!({"handleId": handle, "offset": offset, "len": len});
    let block = client.call("fs/readBlock", params).await;
    (decoded(&block["chunk"]), block["eof"].as_bool().unwrap())
}

fn unknown(handle: &str) -> (i64, String) {
    (-32004, format!("unknown file handle `{handle}`"))
}

#[tokio::test]
async fn blocks_of_an_open_file_are_read() {
    over_each_transport(async |server, client| {
        client.handshake().await;
        let path = file(server, "a", "0123456789");
        let open = json!({"handleId": "h", "path": uri(&path), "sandbox": null});
        assert_eq!(client.call("fs/open", open).await, json!({"handleId": "h"}));
        assert_eq!(block(client, "h", 5, 5).await, (b"56789".to_vec(), false));
        assert_eq!(block(client, "h", 10, 5).await, (Vec::new(), true));
        assert_eq!(
            block(client, "h", 0, 20).await,
            (b"0123456789".to_vec(), true)
        );
        let far = block(client, "h", i64::MAX as u64 - 1, 1).await;
        assert_eq!(far, (Vec::new(), true));
        // The handle stays valid when the path is replaced.
        fs::rename(file(server, "b", "other"), &path).unwrap();
        assert_eq!(block(client, "h", 0, 3).await, (b"012".to_vec(), false));
        let close = json!({"handleId": "h"});
        assert_eq!(client.call("fs/close", close.clone()).await, json!({}));
        assert_eq!(
            client.call("fs/close", close).await,
            json!({}),
            "closing twice succeeds"
        );
        let read = json!({"handleId": "h", "offset": 0, "len": 1});
        assert_eq!(error_of(client, "fs/readBlock", read).await, unknown("h"));
    })
    .await;
}

#[tokio::test]
async fn block_length_is_bounded() {
    let (server, client) = ready().await;
    let path = file(&server, "a", vec![1; 1_100_000]);
    let open = json!({"handleId": "h", "path": uri(&path)});
    client.call("fs/open", open).await;
    let (bytes, eof) = block(&client, "h", 0, 1_048_576).await;
    assert_eq!((bytes.len(), eof), (1_048_576, false));
    let message = "file read block length must be between 1 and 1048576";
    let lengths = [
        json!(0),
        json!(-1),
        json!(i64::MIN),
        json!(1_048_577),
        json!(u64::MAX),
    ];
    for len in lengths {
        // A failed read closes the handle.
        client.call("fs/close", json!({"handleId": "h"})).await;
        let open = json!({"handleId": "h", "path": uri(&path)});
        client.call("fs/open", open).await;
        let params = json!({"handleId": "h", "offset": 0, "len": len});
        assert_eq!(
            error_of(&client, "fs/readBlock", params).await,
            invalid(message)
        );
        let read = json!({"handleId": "h", "offset": 0, "len": 1});
        assert_eq!(error_of(&client, "fs/readBlock", read).await, unknown("h"));
    }
}

#[tokio::test]
async fn handle_ids_are_per_connection() {
    let (server, client) = ready().await;
    let path = uri(&file(&server, "a", "a"));
    let open = |handle: &str| json!({"handleId": handle, "path": path});
    let longest = "h".repeat(32);
    client.call("fs/open", open(&longest)).await;
    let message = format!("file handle `{longest}` already exists");
    assert_eq!(
        error_of(&client, "fs/open", open(&longest)).await,
        invalid(&message)
    );
    let message = "file handle ID must not exceed 32 bytes";
    let too_long = "h".repeat(33);
    assert_eq!(
        error_of(&client, "fs/open", open(&too_long)).await,
        invalid(message)
    );
    // Handles belong to one connection.
    let other = server.client().await;
    let read = json!({"handleId": longest, "offset": 0, "len": 1});
    assert_eq!(
        error_of(&other, "fs/readBlock", read).await,
        unknown(&longest)
    );
    other.call("fs/open", open(&longest)).await;
}

#[tokio::test]
async fn failed_open_leaves_the_id_free() {
    let (server, client) = ready().await;
    let missing = json!({"handleId": "h", "path": uri(&server.dir().join("no"))});
    assert_eq!(error_of(&client, "fs/open", missing).await, not_found());
    let pipe = json!({"handleId": "h", "path": uri(&fifo(&server, "fifo"))});
    let message = format!(
        "path `{}` is not a file",
        server.dir().join("fifo").display()
    );
    assert_eq!(error_of(&client, "fs/open", pipe).await, invalid(&message));
    let open = json!({"handleId": "h", "path": uri(&file(&server, "a", "a"))});
    client.call("fs/open", open).await;
}

#[tokio::test]
async fn at_most_128_handles_are_open() {
    let (server, client) = ready().await;
    let path = uri(&file(&server, "a", "hello"));
    let open = |number: usize| json!({"handleId": number.to_string(), "path": path});
    for number in 0..128 {
        client.call("fs/open", open(number)).await;
    }
    let message = "at most 128 file handles may be open per connection";
    assert_eq!(
        error_of(&client, "fs/open", open(128)).await,
        invalid(message)
    );
    let stream = json!({"handleId": "s", "path": uri(&server.dir().join("new"))});
    assert_eq!(
        error_of(&client, "fs/createStream", stream).await,
        invalid(message)
    );
    assert_eq!(
        block(&client, "127", 0, 5).await,
        (b"hello".to_vec(), false)
    );
    // The slot is free at once.
    let close = client.request("fs/close", json!({"handleId": "5"})).await;
    client.call("fs/open", open(128)).await;
    assert_eq!(client.response(close).await, Ok(json!({})));
}

#[tokio::test]
async fn requests_for_one_handle_keep_their_order() {
    let (server, client) = ready().await;
    let path = uri(&file(&server, "a", "0123456789"));
    let mut responses = Vec::new();
    for round in 0..30_u64 {
        let open = json!({"handleId": "h", "path": path});
        responses.push(client.request("fs/open", open).await);
        let read = json!({"handleId": "h", "offset": round % 10, "len": 1});
        responses.push(client.request("fs/readBlock", read).await);
        // `fs/close` overtakes queued reads, so their responses are awaited first.
        for id in responses.drain(..) {
            client.response(id).await.unwrap();
        }
        client.call("fs/close", json!({"handleId": "h"})).await;
    }
    // Without waiting: the close may overtake a read, but never the open.
    let open = client
        .request("fs/open", json!({"handleId": "h", "path": path}))
        .await;
    let close = client.request("fs/close", json!({"handleId": "h"})).await;
    assert_eq!(client.response(open).await, Ok(json!({"handleId": "h"})));
    assert_eq!(client.response(close).await, Ok(json!({})));
    let read = json!({"handleId": "h", "offset": 0, "len": 1});
    assert_eq!(error_of(&client, "fs/readBlock", read).await, unknown("h"));
}

#[tokio::test]
async fn handles_close_with_the_connection() {
    let (server, client) = ready().await;
    let path = uri(&file(&server, "a", "hello"));
    let open = |id: &str| json!({"handleId": id, "path": path});
    client.call("fs/open", open("first")).await;
    let before = server.stats().open_files();
    for id in 0..20 {
        client.call("fs/open", open(&id.to_string())).await;
    }
    assert!(server.stats().open_files() >= before + 20);
    drop(client);
    // The connection has a descriptor of its own.
    let closed = || (server.stats().open_files() < before).then_some(());
    outpost_testkit::deadline::poll_until("the end of the open files", closed).await;
    let value: Value = server
        .client()
        .await
        .call("environment/status", json!({}))
        .await;
    assert_eq!(value, json!({"status": "ready"}));
}
