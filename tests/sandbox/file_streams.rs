//! Files that stay open, confined.

use std::path::Path;

use outpost_testkit::{base64, file_uri, patience, unbase64};
use serde_json::json;

use super::Site;
use crate::ready;

/// The processes that do file operations for a server: its own program, confined, below it.
fn clerks(server: i32) -> Vec<i32> {
    let parent = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(')')?;
        let (state, rest) = rest.trim().split_once(' ')?;
        let parent: i32 = rest.split(' ').next()?.parse().ok()?;
        (state != "Z").then_some(parent)
    };
    let is_below = |pid: i32| {
        let mut above = std::iter::successors(Some(pid), |pid| parent(*pid));
        above.any(|pid| pid == server)
    };
    let is_stage = |pid: i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.ends_with(b"confine\0inner\0")
    };
    let entries = std::fs::read_dir("/proc").expect("processes").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_stage(*pid) && is_below(*pid))
        .collect()
}

async fn all_gone(server: i32) {
    patience::seen("the end of the clerks", || {
        clerks(server).is_empty().then_some(())
    })
    .await;
}

/// Waits until a folder has these names in it and no others: what keeps others absent goes with the
/// process that needed it, and nobody waits for that when a stream is closed.
async fn has_only(folder: &Path, expected: &[&str]) {
    patience::seen("nothing but what was made", || {
        let entries = std::fs::read_dir(folder).expect("a folder").flatten();
        let names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        (names == expected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_open_file_is_read_in_blocks_though_its_path_is_replaced() {
    let (server, client) = ready().await;
    let site = Site::new();
    let path = site.workspace().join("file");
    std::fs::write(&path, "0123456789").expect("a file");
    let open = json!({"handleId": "h", "path": file_uri(&path), "sandbox": site.sandbox(&[])});
    client.call("fs/open", open).await;
    std::fs::remove_file(&path).expect("it is there");
    let read = json!({"handleId": "h", "offset": 4, "len": 100});
    let block = client.call("fs/readBlock", read).await;
    assert_eq!(unbase64(&block["chunk"]), b"456789");
    assert_eq!(block["eof"], true);
    client.call("fs/close", json!({"handleId": "h"})).await;
    all_gone(server.pid()).await;
}

#[tokio::test]
async fn a_stream_takes_the_place_of_a_file_when_it_is_complete() {
    let (server, client) = ready().await;
    let site = Site::new();
    let path = site.workspace().join("file");
    std::fs::write(&path, "old").expect("a file");
    let create = json!({"handleId": "s", "path": file_uri(&path), "sandbox": site.sandbox(&[])});
    client.call("fs/createStream", create.clone()).await;
    assert!(!clerks(server.pid()).is_empty(), "somebody has it");
    for (offset, text) in [(3, "def"), (0, "abc")] {
        let block = json!({"handleId": "s", "offset": offset, "chunk": base64(text)});
        client.call("fs/writeBlock", block).await;
    }
    assert_eq!(std::fs::read(&path).expect("a file"), b"old");
    client.call("fs/commit", json!({"handleId": "s"})).await;
    assert_eq!(std::fs::read(&path).expect("a file"), b"abcdef");
    let left = std::fs::read_dir(site.workspace()).expect("a folder");
    assert_eq!(left.count(), 1, "who hears of the end finds nothing else");
    all_gone(server.pid()).await;

    client.call("fs/createStream", create).await;
    client.call("fs/close", json!({"handleId": "s"})).await;
    all_gone(server.pid()).await;
    assert_eq!(std::fs::read(&path).expect("a file"), b"abcdef");
    has_only(&site.workspace(), &["file"]).await;
}

#[tokio::test]
async fn a_lost_connection_takes_them_along_and_leaves_no_trace() {
    let (server, client) = ready().await;
    let site = Site::new();
    let path = site.workspace().join("file");
    for id in ["a", "b"] {
        let create = json!({"handleId": id, "path": file_uri(&path), "sandbox": site.sandbox(&[])});
        client.call("fs/createStream", create).await;
        let block = json!({"handleId": id, "offset": 0, "chunk": base64("x")});
        client.call("fs/writeBlock", block).await;
    }
    assert!(!clerks(server.pid()).is_empty(), "somebody has them");
    client.cut().await;
    all_gone(server.pid()).await;
    has_only(&site.workspace(), &[]).await;
}
