//! Tests `fs/createDirectory`, `fs/getMetadata`, `fs/canonicalize`, `fs/remove` and `fs/copy`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::{error_of, failed, fifo, file, invalid, link, not_found, params_for, uri};
use crate::ready;

const SYMLINK_ERROR: &str = "path contains a symbolic link";

fn no_links() -> Value {
    json!({"followSymlinks": false})
}

#[tokio::test]
async fn directories_are_created() {
    let (server, client) = ready().await;
    let deep = server.dir().join("a/b/c");
    let single = json!({"recursive": false});
    let error = error_of(&client, "fs/createDirectory", params_for(&deep, &single)).await;
    assert_eq!(error, not_found());
    for _ in 0..2 {
        let made = client
            .call("fs/createDirectory", params_for(&deep, &json!({})))
            .await;
        assert_eq!(made, json!({}));
    }
    assert!(deep.is_dir());
    let error = error_of(&client, "fs/createDirectory", params_for(&deep, &single)).await;
    assert_eq!(error, failed("File exists (os error 17)"));
    link(&server, "link", "a");
    let real = server.dir().canonicalize().unwrap();
    let behind = real.join("link/new");
    let error = error_of(
        &client,
        "fs/createDirectory",
        params_for(&behind, &no_links()),
    )
    .await;
    assert_eq!(error, invalid(SYMLINK_ERROR));
    client
        .call(
            "fs/createDirectory",
            params_for(&real.join("a/new"), &no_links()),
        )
        .await;
    assert!(server.dir().join("a/new").is_dir());
}

#[tokio::test]
async fn metadata_is_complete() {
    let (server, client) = ready().await;
    let path = file(&server, "a", "hello");
    let get = async |path: &_| {
        client
            .call("fs/getMetadata", params_for(path, &json!({})))
            .await
    };
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
    assert_eq!(kind(&get(server.dir()).await), [true, false, false]);
    assert_eq!(
        kind(&get(&fifo(&server, "fifo")).await),
        [false, false, false]
    );
    let broken = link(&server, "broken", "nowhere");
    let error = error_of(&client, "fs/getMetadata", params_for(&broken, &json!({}))).await;
    assert_eq!(error, not_found());
    let error = error_of(&client, "fs/getMetadata", params_for(&broken, &no_links())).await;
    assert_eq!(error, invalid(SYMLINK_ERROR));
    let through = path.join("x");
    let error = error_of(&client, "fs/getMetadata", params_for(&through, &json!({}))).await;
    assert_eq!(error, failed("Not a directory (os error 20)"));
}

#[tokio::test]
async fn canonical_path_has_no_links() {
    let (server, client) = ready().await;
    file(&server, "a b/file", "");
    link(&server, "l", "a b");
    let real = server.dir().canonicalize().unwrap();
    let params = params_for(&server.dir().join("l/../l/file"), &json!({}));
    let found = client.call("fs/canonicalize", params).await;
    let expected = format!("{}/a%20b/file", uri(&real));
    assert_eq!(found, json!({"path": expected}));
    let missing = params_for(&server.dir().join("no"), &json!({}));
    assert_eq!(
        error_of(&client, "fs/canonicalize", missing).await,
        not_found()
    );
}

#[tokio::test]
async fn entries_are_removed() {
    let (server, client) = ready().await;
    let kept = file(&server, "kept/file", "kept");
    let dir = server.dir().to_owned();
    let remove = async |name: &str, others: Value| {
        client
            .call("fs/remove", params_for(&dir.join(name), &others))
            .await
    };
    file(&server, "tree/deep/file", "");
    link(&server, "tree/link", dir.join("kept"));
    let single = json!({"recursive": false});
    let error = error_of(&client, "fs/remove", params_for(&dir.join("tree"), &single)).await;
    assert_eq!(error, failed("Directory not empty (os error 39)"));
    assert_eq!(remove("tree", json!({})).await, json!({}));
    assert!(!dir.join("tree").exists());
    assert_eq!(
        remove("tree", json!({})).await,
        json!({}),
        "removing twice succeeds"
    );
    let strict = params_for(&dir.join("tree"), &json!({"force": false}));
    assert_eq!(error_of(&client, "fs/remove", strict).await, not_found());

    let l = link(&server, "l", "kept");
    let real = dir.canonicalize().unwrap();
    for name in ["l", "l/file"] {
        let params = params_for(&real.join(name), &no_links());
        assert_eq!(
            error_of(&client, "fs/remove", params).await,
            invalid(SYMLINK_ERROR)
        );
    }
    remove("l", json!({})).await;
    assert!(fs::symlink_metadata(l).is_err());
    assert_eq!(fs::read(kept).unwrap(), b"kept");
}

#[tokio::test]
async fn entries_are_copied() {
    let (server, client) = ready().await;
    let dir = server.dir().to_owned();
    let pair = |source: &str, destination: &str, recursive: bool| {
        json!({
            "sourcePath": uri(&dir.join(source)),
            "destinationPath": uri(&dir.join(destination)),
            "recursive": recursive,
        })
    };
    let script = file(&server, "tree/script", "x");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
    file(&server, "tree/deep/file", "hello");
    link(&server, "tree/link", "nowhere");
    fifo(&server, "tree/fifo");
    link(&server, "l", "tree");

    let message = "fs/copy requires recursive: true when sourcePath is a directory";
    assert_eq!(
        error_of(&client, "fs/copy", pair("tree", "b", false)).await,
        invalid(message)
    );
    let message = "fs/copy cannot copy a directory to itself or one of its descendants";
    for destination in ["tree", "tree/b", "l", "l/b", "tree/deep/new/b"] {
        let params = pair("tree", destination, true);
        assert_eq!(
            error_of(&client, "fs/copy", params).await,
            invalid(message),
            "{destination}"
        );
    }
    let message = "fs/copy only supports regular files, directories, and symlinks";
    let params = pair("tree/fifo", "b", true);
    assert_eq!(error_of(&client, "fs/copy", params).await, invalid(message));
    assert_eq!(
        error_of(&client, "fs/copy", pair("no", "b", true)).await,
        not_found()
    );

    assert_eq!(
        client.call("fs/copy", pair("tree", "copy", true)).await,
        json!({})
    );
    assert_eq!(fs::read(dir.join("copy/deep/file")).unwrap(), b"hello");
    assert_eq!(
        fs::read_link(dir.join("copy/link")).unwrap().to_str(),
        Some("nowhere")
    );
    assert!(fs::symlink_metadata(dir.join("copy/fifo")).is_err());
    let mode = fs::metadata(dir.join("copy/script"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o750);
    client.call("fs/copy", pair("l", "link", false)).await;
    assert_eq!(
        fs::read_link(dir.join("link")).unwrap().to_str(),
        Some("tree")
    );
    client
        .call("fs/copy", pair("tree/script", "file", false))
        .await;
    assert_eq!(fs::read(dir.join("file")).unwrap(), b"x");
}
