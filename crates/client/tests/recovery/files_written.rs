//! Files that are written, when the connection is lost.

use std::time::Duration;

use outpost_client::{Error, FileErrorKind, Files, Place as _, Remote};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::{
    files::{BLOCK, content, kind_of, taken},
    sim::{Sim, SimLine, capable, released, soon},
};

fn writes_streams() -> Value {
    let mut welcome = capable();
    welcome["capabilities"]["fsWriteStream"] = true.into();
    welcome
}

#[tokio::test(start_paused = true)]
async fn blocks_are_written_at_the_same_time_and_committed_behind_all_of_them() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(writes_streams()).await;
    let (mut writer, create) = created(&remote, &mut line).await;
    let writing = tokio::spawn(async move {
        writer.write_all(&content(0, 2 * BLOCK + 5)).await?;
        writer.commit().await.map_err(std::io::Error::from)
    });
    let requests = taken(&mut line, 3).await;
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
    line.is_quiet_for(Duration::from_secs(1)).await;
    for request in requests.iter().rev() {
        line.answer(request, json!({})).await;
    }
    let commit = line.asked_for("fs/commit").await;
    line.answer(&commit, json!({})).await;
    soon("the commit", writing).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn only_so_much_is_on_its_way() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(writes_streams()).await;
    let (mut writer, _) = created(&remote, &mut line).await;
    let writing = tokio::spawn(async move {
        let _ = writer.write_all(&content(0, 100 * BLOCK)).await;
    });
    taken(&mut line, 8).await;
    line.is_quiet_for(Duration::from_secs(1)).await;
    writing.abort();
}

#[tokio::test(start_paused = true)]
async fn what_is_not_committed_is_closed() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(writes_streams()).await;
    let (mut writer, create) = created(&remote, &mut line).await;
    writer.write_all(b"half").await.unwrap();
    drop(writer);
    let close = line.asked_for("fs/close").await;
    assert_eq!(close["params"]["handleId"], create["params"]["handleId"]);
}

#[tokio::test(start_paused = true)]
async fn a_cut_while_writing_ends_the_stream() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(writes_streams()).await;
    let (mut writer, _) = created(&remote, &mut line).await;
    let writing = tokio::spawn(async move {
        writer.write_all(&content(0, BLOCK)).await.unwrap();
        let error = writer.flush().await.unwrap_err();
        let again = writer.write_all(b"more").await.unwrap_err();
        let commit = writer.commit().await.unwrap_err();
        [kind_of(&error), kind_of(&again), commit.kind()]
    });
    line.asked_for("fs/writeBlock").await;
    drop(line);
    let (mut line, _) = sim.resumed(writes_streams()).await;
    let kinds = soon("the errors", writing).await.unwrap();
    assert_eq!(kinds, [FileErrorKind::Interrupted; 3]);
    // Nothing of it is tried on the new connection.
    line.is_quiet_for(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_cut_in_a_commit_leaves_nobody_knowing() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(writes_streams()).await;
    let (writer, _) = created(&remote, &mut line).await;
    let committing = tokio::spawn(writer.commit());
    line.asked_for("fs/commit").await;
    drop(line);
    let (mut line, _) = sim.resumed(writes_streams()).await;
    let error = soon("the error", committing).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), FileErrorKind::Unknown, "{error}");
    line.is_quiet_for(Duration::from_secs(1)).await;
}

/// Whoever copies tells a file that can't be written from a server that is gone.
#[tokio::test(start_paused = true)]
async fn a_place_that_is_gone_for_good_is_told_with_the_file() {
    for (asked, kind) in [
        ("fs/writeBlock", FileErrorKind::Interrupted),
        ("fs/commit", FileErrorKind::Unknown),
    ] {
        for gone in [true, false] {
            let mut sim = match gone {
                true => Sim::once(),
                false => Sim::new(),
            };
            let (remote, mut line) = sim.connect(writes_streams()).await;
            let (mut writer, _) = created(&remote, &mut line).await;
            let writing = tokio::spawn(async move {
                if asked == "fs/writeBlock" {
                    writer.write_all(&content(0, BLOCK)).await.unwrap();
                }
                writer.commit().await
            });
            line.asked_for(asked).await;
            drop(line);
            let _line = match gone {
                true => None,
                false => Some(sim.resumed(writes_streams()).await),
            };
            let error = soon("the error", writing).await.unwrap().unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            let lost = matches!(error.place(), Some(Error::Disconnected { .. }));
            assert_eq!(lost, gone, "{error:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streams_is_not_asked_for_one() {
    let mut sim = Sim::new();
    let (remote, mut line) = sim.connect(released()).await;
    let error = remote.files().create("/f").await.unwrap_err();
    assert_eq!(error.kind(), FileErrorKind::Unavailable);
    assert!(error.to_string().contains("fsWriteStream"), "{error}");
    line.is_quiet_for(Duration::from_secs(1)).await;
}

async fn created(remote: &Remote, line: &mut SimLine) -> (outpost_client::FileWriter, Value) {
    let files: Files = remote.files();
    let serving = async {
        let create = line.asked_for("fs/createStream").await;
        line.answer(&create, json!({})).await;
        create
    };
    let (writer, create) = tokio::join!(files.create("/f"), serving);
    (writer.expect("it begins"), create)
}
