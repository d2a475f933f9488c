//! Writing files when the connection is lost.

use std::time::Duration;

use outpost_client::{Error, Executor as _, FileErrorKind, Files, RemoteExecutor};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::{
    files::{BLOCK, content, kind_of, taken},
    sim::{Sim, SimConnection, full_server, old_server, soon},
};

fn write_stream_capabilities() -> Value {
    let mut initialize_result = full_server();
    initialize_result["capabilities"]["fsWriteStream"] = true.into();
    initialize_result
}

#[tokio::test(start_paused = true)]
async fn blocks_are_written_concurrently_before_the_commit() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(write_stream_capabilities()).await;
    let (mut writer, create) = created(&remote, &mut connection).await;
    let writing = tokio::spawn(async move {
        writer.write_all(&content(0, 2 * BLOCK + 5)).await?;
        writer.commit().await.map_err(std::io::Error::from)
    });
    let requests = taken(&mut connection, 3).await;
    let mut all = vec![0; 2 * BLOCK + 5];
    for request in &requests {
        assert_eq!(request["method"], "fs/writeBlock");
        let params = &request["params"];
        assert_eq!(params["handleId"], create["params"]["handleId"]);
        let chunk = params["chunk"].as_str().unwrap();
        let bytes = outpost_protocol::base64::decode(chunk.as_bytes()).unwrap();
        let offset = params["offset"].as_u64().unwrap() as usize;
        all[offset..offset + bytes.len()].copy_from_slice(&bytes);
    }
    assert!(all == content(0, all.len()));
    connection.expect_silence(Duration::from_secs(1)).await;
    for request in requests.iter().rev() {
        connection.respond(request, json!({})).await;
    }
    let commit = connection.expect_request("fs/commit").await;
    connection.respond(&commit, json!({})).await;
    soon("the commit", writing).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn blocks_in_flight_are_limited() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(write_stream_capabilities()).await;
    let (mut writer, _) = created(&remote, &mut connection).await;
    let writing = tokio::spawn(async move {
        let _ = writer.write_all(&content(0, 100 * BLOCK)).await;
    });
    taken(&mut connection, 8).await;
    connection.expect_silence(Duration::from_secs(1)).await;
    writing.abort();
}

#[tokio::test(start_paused = true)]
async fn dropped_writer_closes_the_handle() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(write_stream_capabilities()).await;
    let (mut writer, create) = created(&remote, &mut connection).await;
    writer.write_all(b"half").await.unwrap();
    drop(writer);
    let close = connection.expect_request("fs/close").await;
    assert_eq!(close["params"]["handleId"], create["params"]["handleId"]);
}

#[tokio::test(start_paused = true)]
async fn cut_while_writing_interrupts() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(write_stream_capabilities()).await;
    let (mut writer, _) = created(&remote, &mut connection).await;
    let writing = tokio::spawn(async move {
        writer.write_all(&content(0, BLOCK)).await.unwrap();
        let error = writer.flush().await.unwrap_err();
        let again = writer.write_all(b"more").await.unwrap_err();
        let commit = writer.commit().await.unwrap_err();
        [kind_of(&error), kind_of(&again), commit.kind()]
    });
    connection.expect_request("fs/writeBlock").await;
    drop(connection);
    let (mut connection, _) = sim.resumed(write_stream_capabilities()).await;
    let kinds = soon("the errors", writing).await.unwrap();
    assert_eq!(kinds, [FileErrorKind::Interrupted; 3]);
    // Nothing is retried on the new connection.
    connection.expect_silence(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn cut_during_commit_leaves_the_outcome_unknown() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(write_stream_capabilities()).await;
    let (writer, _) = created(&remote, &mut connection).await;
    let committing = tokio::spawn(writer.commit());
    connection.expect_request("fs/commit").await;
    drop(connection);
    let (mut connection, _) = sim.resumed(write_stream_capabilities()).await;
    let error = soon("the error", committing).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), FileErrorKind::Unknown, "{error}");
    connection.expect_silence(Duration::from_secs(1)).await;
}

/// A copy must tell a file that cannot be written from a lost server.
#[tokio::test(start_paused = true)]
async fn lost_executor_is_reported_with_the_file() {
    for (asked, kind) in [
        ("fs/writeBlock", FileErrorKind::Interrupted),
        ("fs/commit", FileErrorKind::Unknown),
    ] {
        for gone in [true, false] {
            let mut sim = match gone {
                true => Sim::once(),
                false => Sim::new(),
            };
            let (remote, mut connection) = sim.connect(write_stream_capabilities()).await;
            let (mut writer, _) = created(&remote, &mut connection).await;
            let writing = tokio::spawn(async move {
                if asked == "fs/writeBlock" {
                    writer.write_all(&content(0, BLOCK)).await.unwrap();
                }
                writer.commit().await
            });
            connection.expect_request(asked).await;
            drop(connection);
            let _connection = match gone {
                true => None,
                false => Some(sim.resumed(write_stream_capabilities()).await),
            };
            let error = soon("the error", writing).await.unwrap().unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            let lost = matches!(error.executor_error(), Some(Error::Disconnected { .. }));
            assert_eq!(lost, gone, "{error:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn server_without_streams_gets_no_stream_request() {
    let mut sim = Sim::new();
    let (remote, mut connection) = sim.connect(old_server()).await;
    let error = remote.files().create("/f").await.unwrap_err();
    assert_eq!(error.kind(), FileErrorKind::Unavailable);
    assert!(error.to_string().contains("fsWriteStream"), "{error}");
    connection.expect_silence(Duration::from_secs(1)).await;
}

async fn created(
    remote: &RemoteExecutor,
    connection: &mut SimConnection,
) -> (outpost_client::FileWriter, Value) {
    let files: Files = remote.files();
    let serving = async {
        let create = connection.expect_request("fs/createStream").await;
        connection.respond(&create, json!({})).await;
        create
    };
    let (writer, create) = tokio::join!(files.create("/f"), serving);
    (writer.expect("it begins"), create)
}
