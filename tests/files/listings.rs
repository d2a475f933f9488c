//! Tests `fs/readDirectory` and `fs/walk`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{MISSING, error_of, failed, fifo, file, invalid, link, not_found, params_for, uri};
use crate::ready;

fn options(others: &Value) -> Value {
    let mut options = json!({
        "maxDepth": 64, "maxDirectories": 10_000, "maxEntries": 50_000,
        "followDirectorySymlinks": false,
    });
    let members = options.as_object_mut().unwrap();
    members.extend(others.as_object().unwrap().clone());
    options
}

fn walk(path: &Path, others: &Value) -> Value {
    json!({"path": uri(path), "options": options(others)})
}

/// Paths relative to the root, directories with a trailing slash.
fn listed(root: &Path, found: &Value) -> Vec<String> {
    let prefix = format!("{}/", uri(root));
    let line = |entry: &Value| {
        let path = entry["path"].as_str().unwrap();
        let path = path.strip_prefix(&prefix).unwrap_or(path);
        match entry["kind"].as_str() {
            Some("directory") => format!("{path}/"),
            Some("file") => path.to_owned(),
            other => panic!("{other:?}"),
        }
    };
    found["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(line)
        .collect()
}

#[tokio::test]
async fn directory_is_listed() {
    let (server, client) = ready().await;
    let root = server.dir().join("root");
    file(&server, "root/file", "");
    fs::create_dir(root.join("sub")).unwrap();
    fifo(&server, "root/fifo");
    link(&server, "root/to_file", "file");
    link(&server, "root/to_sub", "sub");
    link(&server, "root/broken", "nowhere");
    fs::write(root.join(OsStr::from_bytes(b"z\xe9")), "").unwrap();
    let found = client
        .call("fs/readDirectory", params_for(&root, &json!({})))
        .await;
    let entry = |name, is_directory, is_file| json!({"fileName": name, "isDirectory": is_directory, "isFile": is_file});
    let expected = json!({"entries": [
        entry("fifo", false, false),
        entry("file", false, true),
        entry("sub", true, false),
        entry("to_file", false, true),
        entry("to_sub", true, false),
        entry("z\u{fffd}", false, true),
    ]});
    assert_eq!(found, expected);
    let all = params_for(&root, &json!({"brokenLinks": true}));
    let all = client.call("fs/readDirectory", all).await;
    let all = all["entries"].as_array().unwrap();
    let broken = |entry: &&Value| entry.get("isBrokenLink").is_some();
    let (broken, others): (Vec<_>, Vec<_>) = all.iter().partition(broken);
    assert_eq!(json!({"entries": others}), expected);
    let expected = json!({
        "fileName": "broken", "isDirectory": false, "isFile": false, "isBrokenLink": true,
    });
    assert_eq!(broken, [&expected]);
    let missing = params_for(&root.join("no"), &json!({}));
    assert_eq!(
        error_of(&client, "fs/readDirectory", missing).await,
        not_found()
    );
    let no_directory = params_for(&root.join("file"), &json!({}));
    let message = "Not a directory (os error 20)";
    assert_eq!(
        error_of(&client, "fs/readDirectory", no_directory).await,
        failed(message)
    );
}

#[tokio::test]
async fn tree_is_walked() {
    let (server, client) = ready().await;
    let root = server.dir().join("root");
    file(&server, "root/b/file", "");
    file(&server, "root/.git/config", "");
    file(&server, "root/a b", "");
    link(&server, "root/l", "b");
    link(&server, "root/b/up", "..");
    fifo(&server, "root/fifo");
    let call = async |others: Value| client.call("fs/walk", walk(&root, &others)).await;
    let found = call(json!({})).await;
    assert_eq!(
        listed(&root, &found),
        [".git/", "a%20b", "b/", ".git/config", "b/file"]
    );
    assert_eq!(
        (&found["errors"], &found["truncated"]),
        (&json!([]), &json!(false))
    );
    let found = call(json!({"pruneHiddenDirectories": true})).await;
    assert_eq!(listed(&root, &found), [".git/", "a%20b", "b/", "b/file"]);
    let found = call(json!({"followDirectorySymlinks": true})).await;
    let expected = [
        ".git/",
        "a%20b",
        "b/",
        "l/",
        ".git/config",
        "b/file",
        "b/up/",
    ];
    assert_eq!(
        listed(&root, &found),
        expected,
        "a link cycle is not followed"
    );
    let found = call(json!({"maxDepth": 0})).await;
    assert_eq!(listed(&root, &found), [".git/", "a%20b", "b/"]);
    let found = call(json!({"maxEntries": 2})).await;
    assert_eq!(listed(&root, &found), [".git/", "a%20b"]);
    assert_eq!(found["truncated"], true);
    let found = call(json!({"maxDirectories": 1})).await;
    assert_eq!(listed(&root, &found), [".git/", "a%20b", "b/"]);
    assert_eq!(found["truncated"], true);
    let empty = json!({"entries": [], "errors": [], "truncated": false});
    let no_directory = walk(&root.join("a b"), &json!({}));
    assert_eq!(client.call("fs/walk", no_directory).await, empty);
}

#[tokio::test]
async fn invalid_walks_are_rejected() {
    let (server, client) = ready().await;
    let missing = server.dir().join("no");
    let walk_error =
        async |others: Value| error_of(&client, "fs/walk", walk(&missing, &others)).await;
    let zero = "filesystem walk limits must be greater than zero";
    assert_eq!(
        walk_error(json!({"maxDirectories": 0})).await,
        invalid(zero)
    );
    assert_eq!(walk_error(json!({"maxEntries": 0})).await, invalid(zero));
    assert_eq!(
        walk_error(json!({"maxDirectories": -1})).await,
        invalid(zero)
    );
    assert_eq!(walk_error(json!({"maxEntries": -1})).await, invalid(zero));
    let far = "filesystem walk limits exceed maximums: depth=64, directories=10000, entries=50000";
    assert_eq!(walk_error(json!({"maxDepth": 65})).await, invalid(far));
    assert_eq!(
        walk_error(json!({"maxDirectories": 10_001})).await,
        invalid(far)
    );
    assert_eq!(
        walk_error(json!({"maxEntries": 50_001})).await,
        invalid(far)
    );
    assert_eq!(walk_error(json!({})).await, not_found());
    for name in [
        "maxDepth",
        "maxDirectories",
        "maxEntries",
        "followDirectorySymlinks",
    ] {
        let mut params = walk(server.dir(), &json!({}));
        params["options"].as_object_mut().unwrap().remove(name);
        assert_eq!(
            client.call_fails("fs/walk", params).await.code,
            -32602,
            "{name}"
        );
    }
}

#[tokio::test]
async fn invalid_utf8_names_are_reported() {
    let (server, client) = ready().await;
    let root = server.dir().join("root");
    file(&server, "root/a", "");
    fs::write(root.join(OsStr::from_bytes(b"caf\xe9")), "").unwrap();
    let found = client.call("fs/walk", walk(&root, &json!({}))).await;
    assert_eq!(listed(&root, &found), ["a"]);
    let path = format!("{}/caf%EF%BF%BD", uri(&root));
    let reason = "file name is not valid UTF-8";
    let expected = json!([{"path": path, "message": MISSING, "reason": reason}]);
    assert_eq!(found["errors"], expected);
}

#[tokio::test]
async fn listing_is_limited_to_50000_names() {
    let (server, client) = ready().await;
    let root = server.dir().join("root");
    fs::create_dir(&root).unwrap();
    for number in 0..50_000 {
        fs::File::create(root.join(number.to_string())).unwrap();
    }
    let found = client
        .call("fs/readDirectory", params_for(&root, &json!({})))
        .await;
    assert_eq!(found["entries"].as_array().unwrap().len(), 50_000);
    let found = client.call("fs/walk", walk(&root, &json!({}))).await;
    let entries = found["entries"].as_array().unwrap().len();
    // If the temporary directory has a long path, the limit of 4 MiB is reached first.
    assert_eq!(entries < 50_000, found["truncated"].as_bool().unwrap());
    assert!(entries > 20_000, "{entries}");
    assert!(found.to_string().len() <= 4 * 1024 * 1024);
    file(&server, "root/more", "");
    let error = error_of(&client, "fs/readDirectory", params_for(&root, &json!({}))).await;
    assert_eq!(error, failed("directory has more than 50000 entries"));
}
