//! Tests sandboxed file handles and streams.

use std::path::Path;

use outpost_testkit::{base64, deadline, file_uri, unbase64};
use serde_json::json;

use super::SandboxDirs;
use crate::ready;

/// The file workers of a server: sandboxed descendants with its own program.
fn file_workers(server: i32) -> Vec<i32> {
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
    let is_file_worker = |pid: i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.ends_with(b"confine\0run\0")
    };
    let entries = std::fs::read_dir("/proc").expect("processes").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_file_worker(*pid) && is_below(*pid))
        .collect()
}

async fn wait_no_file_workers(server: i32) {
    deadline::poll_until("the end of the file workers", || {
        file_workers(server).is_empty().then_some(())
    })
    .await;
}

/// Waits until a directory has exactly these names. Placeholders are removed with the process that
/// needed them, which closing a stream doesn't wait for.
async fn wait_for_names(dir: &Path, expected: &[&str]) {
    deadline::poll_until("exactly these names", || {
        let entries = std::fs::read_dir(dir).expect("a directory").flatten();
        let names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        (names == expected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn open_file_is_read_in_blocks_after_its_path_is_replaced() {
    let (server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let path = dirs.workspace().join("file");
    std::fs::write(&path, "0123456789").expect("a file");
    let open = json!({"handleId": "h", "path": file_uri(&path), "sandbox": dirs.sandbox(&[])});
    client.call("fs/open", open).await;
    std::fs::remove_file(&path).expect("it exists");
    let read = json!({"handleId": "h", "offset": 4, "len": 100});
    let block = client.call("fs/readBlock", read).await;
    assert_eq!(unbase64(&block["chunk"]), b"456789");
    assert_eq!(block["eof"], true);
    client.call("fs/close", json!({"handleId": "h"})).await;
    wait_no_file_workers(server.pid()).await;
}

#[tokio::test]
async fn commit_replaces_the_file() {
    let (server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let path = dirs.workspace().join("file");
    std::fs::write(&path, "old").expect("a file");
    let create = json!({"handleId": "s", "path": file_uri(&path), "sandbox": dirs.sandbox(&[])});
    client.call("fs/createStream", create.clone()).await;
    assert!(
        !file_workers(server.pid()).is_empty(),
        "a file worker is running"
    );
    for (offset, text) in [(3, "def"), (0, "abc")] {
        let block = json!({"handleId": "s", "offset": offset, "chunk": base64(text)});
        client.call("fs/writeBlock", block).await;
    }
    assert_eq!(std::fs::read(&path).expect("a file"), b"old");
    client.call("fs/commit", json!({"handleId": "s"})).await;
    assert_eq!(std::fs::read(&path).expect("a file"), b"abcdef");
    let left = std::fs::read_dir(dirs.workspace()).expect("a directory");
    assert_eq!(
        left.count(),
        1,
        "the temporary file is gone at the response"
    );
    wait_no_file_workers(server.pid()).await;

    client.call("fs/createStream", create).await;
    client.call("fs/close", json!({"handleId": "s"})).await;
    wait_no_file_workers(server.pid()).await;
    assert_eq!(std::fs::read(&path).expect("a file"), b"abcdef");
    wait_for_names(&dirs.workspace(), &["file"]).await;
}

#[tokio::test]
async fn lost_connection_ends_workers_and_leaves_nothing() {
    let (server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let path = dirs.workspace().join("file");
    for id in ["a", "b"] {
        let create = json!({"handleId": id, "path": file_uri(&path), "sandbox": dirs.sandbox(&[])});
        client.call("fs/createStream", create).await;
        let block = json!({"handleId": id, "offset": 0, "chunk": base64("x")});
        client.call("fs/writeBlock", block).await;
    }
    assert!(
        !file_workers(server.pid()).is_empty(),
        "file workers are running"
    );
    client.cut().await;
    wait_no_file_workers(server.pid()).await;
    wait_for_names(&dirs.workspace(), &[]).await;
}

#[tokio::test]
async fn file_is_replaced_in_place_where_it_may_be_written() {
    let (server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let open = |path: &Path| {
        let path = file_uri(path);
        json!({"handleId": "h", "path": path, "mode": "replace", "sandbox": dirs.sandbox(&[])})
    };
    let path = dirs.workspace().join("file");
    std::fs::write(&path, "old content").expect("a file");
    client.call("fs/open", open(&path)).await;
    assert_eq!(std::fs::read(&path).expect("a file"), b"");
    for (offset, text) in [(3, "def"), (0, "abc")] {
        let block = json!({"handleId": "h", "offset": offset, "chunk": base64(text)});
        client.call("fs/writeBlock", block).await;
    }
    client.call("fs/close", json!({"handleId": "h"})).await;
    assert_eq!(std::fs::read(&path).expect("a file"), b"abcdef");
    wait_no_file_workers(server.pid()).await;

    std::fs::write(dirs.outside("file"), "outside").expect("a file");
    std::fs::create_dir(dirs.workspace().join(".git")).expect("a directory");
    let link = dirs.workspace().join("link");
    std::os::unix::fs::symlink(dirs.outside("file"), &link).expect("a link");
    let elsewhere = [
        dirs.outside("file"),
        dirs.outside("new"),
        dirs.workspace().join(".git/config"),
        link,
    ];
    for path in elsewhere {
        let error = client.call_fails("fs/open", open(&path)).await;
        let expected = (-32603, "Read-only file system (os error 30)");
        assert_eq!(
            (error.code, &*error.message),
            expected,
            "{}",
            path.display()
        );
    }
    let outside = std::fs::read(dirs.outside("file")).expect("a file");
    assert_eq!(outside, b"outside");
    assert!(!dirs.outside("new").exists());
    assert!(!dirs.workspace().join(".git/config").exists());
}
