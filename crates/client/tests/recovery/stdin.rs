//! Writes to standard input.

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::sim::{Sim, SimConnection, full_server, soon, started};

/// Accepts the next write. Returns its bytes as base64.
async fn write(connection: &mut SimConnection) -> String {
    let request = connection.expect_request("process/write").await;
    connection
        .respond(&request, json!({"status": "accepted"}))
        .await;
    let chunk = request["params"]["chunk"].as_str().unwrap_or_default();
    chunk.to_owned()
}

#[tokio::test(start_paused = true)]
async fn unpolled_stdin_does_not_block_writes() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    let mut stdin = process.stdin();
    stdin.write_all(b"a").await.unwrap();
    let first = connection.expect_request("process/write").await;
    let server = async {
        connection
            .respond(&first, json!({"status": "accepted"}))
            .await;
        write(&mut connection).await
    };
    let (written, chunk) = soon("the second write", async {
        tokio::join!(process.write("b"), server)
    })
    .await;
    written.unwrap();
    assert_eq!(chunk, "Yg==");
}

#[tokio::test(start_paused = true)]
async fn queued_writes_are_merged() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    let mut stdin = process.stdin();
    stdin.write_all(b"a").await.unwrap();
    let first = connection.expect_request("process/write").await;
    for piece in [b"b", b"c", b"d"] {
        stdin.write_all(piece).await.unwrap();
    }
    connection
        .respond(&first, json!({"status": "accepted"}))
        .await;
    let (flushed, chunk) = tokio::join!(stdin.flush(), write(&mut connection));
    flushed.unwrap();
    assert_eq!(chunk, "YmNk");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_after_a_failed_write() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(full_server()).await;
    let process = started(&remote, &mut connection, "p").await;
    let mut stdin = process.stdin();
    stdin.write_all(b"a").await.unwrap();
    let first = connection.expect_request("process/write").await;
    stdin.write_all(b"b").await.unwrap();
    let text = "Server overloaded; retry later.";
    connection.reject(&first, -32001, text).await;
    let refused = soon("the rejection", stdin.flush()).await.unwrap_err();
    assert!(refused.to_string().contains(text), "{refused}");
    soon("the error again", stdin.flush()).await.unwrap_err();
    // Other writers are not affected.
    let (written, chunk) = tokio::join!(process.write("c"), write(&mut connection));
    written.unwrap();
    assert_eq!(chunk, "Yw==");
}
