//! Tests `fs/createStream`, `fs/writeBlock` and `fs/commit`.

use std::fs;

use outpost_testkit::{Client, Server};
use serde_json::{Value, json};

use super::{encoded, error_of, failed, fifo, file, invalid, not_found, uri};
use crate::{over_each_transport, ready};

async fn write(client: &Client, offset: u64, bytes: &str) {
    let params = json!({"handleId": "s", "offset": offset, "chunk": encoded(bytes)});
    assert_eq!(client.call("fs/writeBlock", params).await, json!({}));
}

async fn create(server: &Server, client: &Client, name: &str) {
    let path = uri(&server.dir().join(name));
    let params = json!({"handleId": "s", "path": path, "sandbox": null});
    assert_eq!(client.call("fs/createStream", params).await, json!({}));
}

fn names(server: &Server) -> Vec<String> {
    let entries = fs::read_dir(server.dir()).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn unknown() -> (i64, String) {
    (-32004, "unknown file handle `s`".to_owned())
}

fn commit() -> Value {
    json!({"handleId": "s"})
}

#[tokio::test]
async fn commit_replaces_the_file_atomically() {
    over_each_transport(async |server, client| {
        let response = client.handshake().await;
        assert_eq!(response["capabilities"]["fsWriteStream"], true);
        let path = file(server, "a", "old");
        let before = names(server);
        create(server, client, "a").await;
        write(client, 5, " world").await;
        write(client, 0, "hello").await;
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(client.call("fs/commit", commit()).await, json!({}));
        assert_eq!(fs::read(&path).unwrap(), b"hello world");
        assert_eq!(names(server), before);
        assert_eq!(error_of(client, "fs/commit", commit()).await, unknown());
    })
    .await;
}

#[tokio::test]
async fn close_leaves_the_old_file_only() {
    let (server, client) = ready().await;
    let path = file(&server, "a", "old");
    let before = names(&server);
    for name in ["a", "new"] {
        create(&server, &client, name).await;
        write(&client, 0, "new").await;
        client.call("fs/close", commit()).await;
        assert_eq!(error_of(&client, "fs/commit", commit()).await, unknown());
    }
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(&server), before);
}

#[tokio::test]
async fn lost_connection_leaves_the_old_file_only() {
    let (server, client) = ready().await;
    let path = file(&server, "a", "old");
    let before = names(&server);
    create(&server, &client, "a").await;
    write(&client, 0, "new").await;
    let with_stream = server.stats().open_files();
    drop(client);
    // The stream has two descriptors, the connection one.
    let gone = || (server.stats().open_files() + 3 <= with_stream).then_some(());
    outpost_testkit::deadline::poll_until("the end of the stream", gone).await;
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(&server), before);
}

#[tokio::test]
async fn pipelined_stream_succeeds() {
    let (server, client) = ready().await;
    let path = uri(&server.dir().join("new"));
    let mut ids = Vec::new();
    let params = json!({"handleId": "s", "path": path});
    ids.push(client.request("fs/createStream", params).await);
    for offset in 0..20 {
        let params = json!({"handleId": "s", "offset": offset, "chunk": encoded("x")});
        ids.push(client.request("fs/writeBlock", params).await);
    }
    ids.push(client.request("fs/commit", commit()).await);
    for id in ids {
        assert_eq!(client.response(id).await, Ok(json!({})));
    }
    assert_eq!(fs::read(server.dir().join("new")).unwrap(), [b'x'; 20]);
}

#[tokio::test]
async fn invalid_streams_are_rejected() {
    let (server, client) = ready().await;
    let create = |path| json!({"handleId": "s", "path": uri(path)});
    let missing = server.dir().join("no/file");
    assert_eq!(
        error_of(&client, "fs/createStream", create(&missing)).await,
        not_found()
    );
    let dir = error_of(&client, "fs/createStream", create(server.dir())).await;
    assert_eq!(dir, failed("Is a directory (os error 21)"));
    let pipe = fifo(&server, "fifo");
    let pipe = error_of(&client, "fs/createStream", create(&pipe)).await;
    let message = format!(
        "path `{}` is not a file",
        server.dir().join("fifo").display()
    );
    assert_eq!(pipe, invalid(&message));
    let params = json!({"handleId": "s", "offset": 0, "chunk": "YQ=="});
    assert_eq!(error_of(&client, "fs/writeBlock", params).await, unknown());

    // Read handles and write streams don't mix.
    let path = file(&server, "a", "a");
    client.call("fs/open", create(&path)).await;
    assert_eq!(error_of(&client, "fs/commit", commit()).await, unknown());
    let message = "file handle `s` already exists";
    assert_eq!(
        error_of(&client, "fs/createStream", create(&path)).await,
        invalid(message)
    );
    client.call("fs/close", commit()).await;
    client.call("fs/createStream", create(&path)).await;
    let read = json!({"handleId": "s", "offset": 0, "len": 1});
    let read = error_of(&client, "fs/readBlock", read).await;
    assert_eq!(read, failed("Bad file descriptor (os error 9)"));
    let params = json!({"handleId": "s", "offset": 0, "chunk": "a!"});
    assert_eq!(
        client.call_fails("fs/writeBlock", params).await.code,
        -32602
    );
}
