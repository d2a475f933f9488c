//! Tests `fs/open` with `mode`, and `fs/writeBlock` into such files, as released servers answer.

use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use outpost_testkit::{Client, base64, deadline};
use serde_json::{Value, json};

use super::{error_of, failed, fifo, file, invalid, link, not_found, uri};
use crate::{outpost, over_each_transport, ready};

const EBADF: &str = "Bad file descriptor (os error 9)";

fn open(handle: &str, path: &Path) -> Value {
    json!({"handleId": handle, "path": uri(path), "mode": "replace"})
}

fn block(handle: &str, offset: u64, bytes: &str) -> Value {
    json!({"handleId": handle, "offset": offset, "chunk": base64(bytes)})
}

async fn write(client: &Client, handle: &str, offset: u64, bytes: &str) {
    let params = block(handle, offset, bytes);
    assert_eq!(client.call("fs/writeBlock", params).await, json!({}));
}

#[tokio::test]
async fn blocks_are_written_in_place_at_once() {
    over_each_transport(async |server, client| {
        client.handshake().await;
        let info = client.call("environment/info", json!({})).await;
        assert_eq!(info["capabilities"]["fileWriteStreaming"], true);
        let path = file(server, "f", "before");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        fs::hard_link(&path, server.dir().join("other name")).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        let opened = client.call("fs/open", open("h", &path)).await;
        assert_eq!(opened, json!({"handleId": "h"}));
        assert_eq!(fs::read(&path).unwrap(), b"", "it is truncated at the open");
        write(client, "h", 0, "hello").await;
        assert_eq!(fs::read(&path).unwrap(), b"hello");
        write(client, "h", 5, " world").await;
        write(client, "h", 0, "J").await;
        assert_eq!(fs::read(&path).unwrap(), b"Jello world");
        write(client, "h", 20, "sparse").await;
        assert_eq!(
            fs::read(&path).unwrap(),
            b"Jello world\0\0\0\0\0\0\0\0\0sparse"
        );
        // A renamed file is the same file.
        fs::rename(&path, server.dir().join("moved")).unwrap();
        write(client, "h", 0, "C").await;
        let close = json!({"handleId": "h"});
        assert_eq!(client.call("fs/close", close.clone()).await, json!({}));
        assert_eq!(client.call("fs/close", close).await, json!({}));
        let (moved, other) = (server.dir().join("moved"), server.dir().join("other name"));
        assert!(fs::read(&moved).unwrap().starts_with(b"Cello world"));
        assert_eq!(fs::read(&other).unwrap(), fs::read(&moved).unwrap());
        let metadata = fs::metadata(&moved).unwrap();
        assert_eq!((metadata.ino(), metadata.mode() & 0o7777), (inode, 0o640));
    })
    .await;
}

#[tokio::test]
async fn links_are_followed_and_missing_targets_created() {
    let (server, client) = ready().await;
    let target = file(&server, "target", "old");
    let links = [
        (link(&server, "link", "target"), target),
        (link(&server, "dangling", "new"), server.dir().join("new")),
    ];
    for (link, target) in links {
        client.call("fs/open", open("h", &link)).await;
        write(&client, "h", 0, "x").await;
        client.call("fs/close", json!({"handleId": "h"})).await;
        assert_eq!(fs::read(target).unwrap(), b"x");
        assert!(fs::symlink_metadata(link).unwrap().is_symlink());
    }
}

#[tokio::test]
async fn second_handle_truncates_and_both_write() {
    let (server, client) = ready().await;
    let path = server.dir().join("f");
    client.call("fs/open", open("a", &path)).await;
    write(&client, "a", 0, "long text").await;
    let taken = error_of(&client, "fs/open", open("a", &file(&server, "other", "x"))).await;
    assert_eq!(taken, invalid("file handle `a` already exists"));
    assert_eq!(fs::read(server.dir().join("other")).unwrap(), b"x");
    client.call("fs/open", open("", &path)).await;
    write(&client, "", 0, "b").await;
    write(&client, "a", 1, "a").await;
    assert_eq!(fs::read(&path).unwrap(), b"ba");
}

#[tokio::test]
async fn modes_are_read_or_replace() {
    let (server, client) = ready().await;
    let path = file(&server, "f", "text");
    for (mode, message) in [
        (
            json!("zzz"),
            "unknown variant `zzz`, expected `read` or `replace`",
        ),
        (json!(null), "invalid type: null, expected string or map"),
    ] {
        let params = json!({"handleId": "h", "path": uri(&path), "mode": mode});
        let id = client.request("fs/open", params).await;
        let error = &client.response_message(id).await["error"];
        assert_eq!(error["code"], -32602);
        assert_eq!(error["message"], message);
        assert_eq!(
            error["data"],
            json!({"kind": "invalidParams", "member": "mode"})
        );
    }
    assert_eq!(fs::read(&path).unwrap(), b"text");
    let params = json!({"handleId": "h", "path": uri(&path), "mode": "read"});
    client.call("fs/open", params).await;
    let read = json!({"handleId": "h", "offset": 0, "len": 4});
    assert_eq!(
        client.call("fs/readBlock", read).await["chunk"],
        base64("text")
    );
}

#[tokio::test]
async fn failed_write_leaves_the_handle_open_and_failed_read_closes_it() {
    let (server, client) = ready().await;
    let path = server.dir().join("f");
    client.call("fs/open", open("w", &path)).await;
    let length = "file write block length must be between 1 and 1048576";
    for chunk in [String::new(), "x".repeat(1_048_577)] {
        for handle in ["w", "unknown"] {
            let error = error_of(&client, "fs/writeBlock", block(handle, 0, &chunk)).await;
            assert_eq!(error, invalid(length), "{handle}");
        }
    }
    let range = "file write range exceeds the signed 64-bit file offset limit";
    for offset in [i64::MAX as u64, u64::MAX] {
        let error = error_of(&client, "fs/writeBlock", block("w", offset, "x")).await;
        assert_eq!(error, invalid(range));
    }
    let unknown = error_of(&client, "fs/writeBlock", block("unknown", 0, "x")).await;
    assert_eq!(
        unknown,
        (-32004, "unknown file handle `unknown`".to_owned())
    );
    let params = json!({"handleId": "w", "offset": 0, "chunk": "!"});
    let error = error_of(&client, "fs/writeBlock", params).await;
    assert_eq!(error, (-32602, "Invalid symbol 33, offset 0.".to_owned()));
    write(&client, "w", 0, "still open").await;

    let read = |handle: &str| json!({"handleId": handle, "offset": 0, "len": 1});
    assert_eq!(
        error_of(&client, "fs/readBlock", read("w")).await,
        failed(EBADF)
    );
    let closed = error_of(&client, "fs/writeBlock", block("w", 0, "x")).await;
    assert_eq!(closed, (-32004, "unknown file handle `w`".to_owned()));

    let params = json!({"handleId": "r", "path": uri(&path)});
    client.call("fs/open", params).await;
    let error = error_of(&client, "fs/writeBlock", block("r", 0, "x")).await;
    assert_eq!(error, failed(EBADF));
    client.call("fs/readBlock", read("r")).await;
    let far = json!({"handleId": "r", "offset": u64::MAX, "len": 1});
    let error = error_of(&client, "fs/readBlock", far).await;
    assert_eq!(error, invalid("Invalid argument (os error 22)"));
    let closed = error_of(&client, "fs/readBlock", read("r")).await;
    assert_eq!(closed, (-32004, "unknown file handle `r`".to_owned()));
    assert_eq!(fs::read(&path).unwrap(), b"still open");
}

#[tokio::test]
async fn write_beyond_the_size_limit_is_short_and_leaves_the_handle_open() {
    let server = outpost().after_shell("ulimit -f 64").start().await;
    let client = server.client().await;
    let path = server.dir().join("f");
    client.call("fs/open", open("h", &path)).await;
    let error = error_of(
        &client,
        "fs/writeBlock",
        block("h", 0, &"x".repeat(100_000)),
    )
    .await;
    assert_eq!(error, failed("File too large (os error 27)"));
    let written = fs::metadata(&path).unwrap().len();
    assert!((1..100_000).contains(&written), "{written}");
    write(&client, "h", 0, "y").await;
    assert_eq!(fs::read(&path).unwrap()[..2], *b"yx");
}

#[tokio::test]
async fn files_that_cannot_be_replaced_are_rejected_and_unchanged() {
    let (server, client) = ready().await;
    let running = server.dir().join("program");
    fs::copy("/bin/sleep", &running).unwrap();
    let mut child = std::process::Command::new(&running)
        .arg("60")
        .spawn()
        .unwrap();
    for (path, expected) in [
        (
            server.dir().to_owned(),
            failed("Is a directory (os error 21)"),
        ),
        (
            fifo(&server, "fifo"),
            failed("No such device or address (os error 6)"),
        ),
        (
            "/dev/null".into(),
            invalid("path `/dev/null` is not a file"),
        ),
        (server.dir().join("no/file"), not_found()),
        (running.clone(), failed("Text file busy (os error 26)")),
    ] {
        let error = error_of(&client, "fs/open", open("h", &path)).await;
        assert_eq!(error, expected, "{}", path.display());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // The id is free.
    client.call("fs/open", open("h", &running)).await;
}

#[tokio::test]
async fn lost_connection_keeps_what_was_written() {
    let (server, client) = ready().await;
    let path = file(&server, "f", "old content");
    client.call("fs/open", open("h", &path)).await;
    write(&client, "h", 0, "new").await;
    let before = server.stats().open_files();
    drop(client);
    let gone = || (server.stats().open_files() + 2 <= before).then_some(());
    deadline::poll_until("the end of the open file", gone).await;
    assert_eq!(fs::read(&path).unwrap(), b"new");
    let other = server.client().await;
    let error = error_of(&other, "fs/writeBlock", block("h", 0, "x")).await;
    assert_eq!(error, (-32004, "unknown file handle `h`".to_owned()));
}

#[tokio::test]
async fn far_offset_makes_a_sparse_file() {
    let (server, client) = ready().await;
    let path = server.dir().join("f");
    client.call("fs/open", open("h", &path)).await;
    let far = 1 << 40;
    write(&client, "h", far, "end").await;
    let file = fs::File::open(&path).unwrap();
    let metadata = file.metadata().unwrap();
    assert_eq!(metadata.len(), far + 3);
    assert!(metadata.blocks() * 512 < 1 << 20);
    let mut end = [0; 3];
    file.read_exact_at(&mut end, far).unwrap();
    assert_eq!(&end, b"end");
}
