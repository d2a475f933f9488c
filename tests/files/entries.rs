//! `fs/createDirectory`, `fs/getMetadata`, `fs/canonicalize`, `fs/remove`, `fs/copy`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::{about, failed, fifo, file, invalid, link, missing, refused, uri};
use crate::ready;

const LINK: &str = "path contains a symbolic link";

fn no_links() -> Value {
    json!({"followSymlinks": false})
}

#[tokio::test]
async fn directories_are_made() {
    let (server, client) = ready().await;
    let deep = server.folder().join("a/b/c");
    let single = json!({"recursive": false});
    let answer = refused(&client, "fs/createDirectory", about(&deep, &single)).await;
    assert_eq!(answer, missing());
    for _ in 0..2 {
        let made = client
            .call("fs/createDirectory", about(&deep, &json!({})))
            .await;
        assert_eq!(made, json!({}));
    }
    assert!(deep.is_dir());
    let answer = refused(&client, "fs/createDirectory", about(&deep, &single)).await;
    assert_eq!(answer, failed("File exists (os error 17)"));
    link(&server, "link", "a");
    let real = server.folder().canonicalize().unwrap();
    let behind = real.join("link/new");
    let answer = refused(&client, "fs/createDirectory", about(&behind, &no_links())).await;
    assert_eq!(answer, invalid(LINK));
    client
        .call(
            "fs/createDirectory",
            about(&real.join("a/new"), &no_links()),
        )
        .await;
    assert!(server.folder().join("a/new").is_dir());
}

#[tokio::test]
async fn metadata() {
    let (server, client) = ready().await;
    let path = file(&server, "a", "hello");
    let get = async |path: &_| client.call("fs/getMetadata", about(path, &json!({}))).await;
    let found = get(&path).await;
    let kind = |found: &Value| {
        ["isDirectory", "isFile", "isSymlink"].map(|name| found[name].as_bool().unwrap())
    };
    assert_eq!(kind(&found), [false, true, false]);
    assert_eq!(found["size"], 5);
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(found["modifiedAtMs"], since.as_millis() as u64);
    assert!(found["createdAtMs"].is_i64() && found.as_object().unwrap().len() == 6);
    assert_eq!(
        kind(&get(&link(&server, "l", "a")).await),
        [false, true, true]
    );
    assert_eq!(kind(&get(server.folder()).await), [true, false, false]);
    assert_eq!(
        kind(&get(&fifo(&server, "fifo")).await),
        [false, false, false]
    );
    let broken = link(&server, "broken", "nowhere");
    let answer = refused(&client, "fs/getMetadata", about(&broken, &json!({}))).await;
    assert_eq!(answer, missing());
    let answer = refused(&client, "fs/getMetadata", about(&broken, &no_links())).await;
    assert_eq!(answer, invalid(LINK));
    let through = path.join("x");
    let answer = refused(&client, "fs/getMetadata", about(&through, &json!({}))).await;
    assert_eq!(answer, failed("Not a directory (os error 20)"));
}

#[tokio::test]
async fn the_way_without_links() {
    let (server, client) = ready().await;
    file(&server, "a b/file", "");
    link(&server, "l", "a b");
    let real = server.folder().canonicalize().unwrap();
    let params = about(&server.folder().join("l/../l/file"), &json!({}));
    let found = client.call("fs/canonicalize", params).await;
    let expected = format!("{}/a%20b/file", uri(&real));
    assert_eq!(found, json!({"path": expected}));
    let nowhere = about(&server.folder().join("no"), &json!({}));
    assert_eq!(
        refused(&client, "fs/canonicalize", nowhere).await,
        missing()
    );
}

#[tokio::test]
async fn removing() {
    let (server, client) = ready().await;
    let kept = file(&server, "kept/file", "kept");
    let folder = server.folder().to_owned();
    let remove = async |name: &str, others: Value| {
        client
            .call("fs/remove", about(&folder.join(name), &others))
            .await
    };
    file(&server, "tree/deep/file", "");
    link(&server, "tree/link", folder.join("kept"));
    let single = json!({"recursive": false});
    let answer = refused(&client, "fs/remove", about(&folder.join("tree"), &single)).await;
    assert_eq!(answer, failed("Directory not empty (os error 39)"));
    assert_eq!(remove("tree", json!({})).await, json!({}));
    assert!(!folder.join("tree").exists());
    assert_eq!(remove("tree", json!({})).await, json!({}), "gone is gone");
    let strict = about(&folder.join("tree"), &json!({"force": false}));
    assert_eq!(refused(&client, "fs/remove", strict).await, missing());

    let l = link(&server, "l", "kept");
    let real = folder.canonicalize().unwrap();
    for name in ["l", "l/file"] {
        let params = about(&real.join(name), &no_links());
        assert_eq!(refused(&client, "fs/remove", params).await, invalid(LINK));
    }
    remove("l", json!({})).await;
    assert!(fs::symlink_metadata(l).is_err());
    assert_eq!(fs::read(kept).unwrap(), b"kept");
}

#[tokio::test]
async fn copying() {
    let (server, client) = ready().await;
    let folder = server.folder().to_owned();
    let pair = |source: &str, destination: &str, recursive: bool| {
        json!({
            "sourcePath": uri(&folder.join(source)),
            "destinationPath": uri(&folder.join(destination)),
            "recursive": recursive,
        })
    };
    let script = file(&server, "tree/script", "x");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
    file(&server, "tree/deep/file", "hello");
    link(&server, "tree/link", "nowhere");
    fifo(&server, "tree/fifo");
    link(&server, "l", "tree");

    let words = "fs/copy requires recursive: true when sourcePath is a directory";
    assert_eq!(
        refused(&client, "fs/copy", pair("tree", "b", false)).await,
        invalid(words)
    );
    let words = "fs/copy cannot copy a directory to itself or one of its descendants";
    for destination in ["tree", "tree/b", "l", "l/b", "tree/deep/new/b"] {
        let params = pair("tree", destination, true);
        assert_eq!(
            refused(&client, "fs/copy", params).await,
            invalid(words),
            "{destination}"
        );
    }
    let words = "fs/copy only supports regular files, directories, and symlinks";
    let params = pair("tree/fifo", "b", true);
    assert_eq!(refused(&client, "fs/copy", params).await, invalid(words));
    assert_eq!(
        refused(&client, "fs/copy", pair("no", "b", true)).await,
        missing()
    );

    assert_eq!(
        client.call("fs/copy", pair("tree", "copy", true)).await,
        json!({})
    );
    assert_eq!(fs::read(folder.join("copy/deep/file")).unwrap(), b"hello");
    assert_eq!(
        fs::read_link(folder.join("copy/link")).unwrap().to_str(),
        Some("nowhere")
    );
    assert!(fs::symlink_metadata(folder.join("copy/fifo")).is_err());
    let mode = fs::metadata(folder.join("copy/script"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o750);
    client.call("fs/copy", pair("l", "link", false)).await;
    assert_eq!(
        fs::read_link(folder.join("link")).unwrap().to_str(),
        Some("tree")
    );
    client
        .call("fs/copy", pair("tree/script", "file", false))
        .await;
    assert_eq!(fs::read(folder.join("file")).unwrap(), b"x");
}
