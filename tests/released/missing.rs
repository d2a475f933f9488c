//! `fs/watchMissing` and `fs/missingChanged`.

use std::{fs, os::unix::fs::symlink, path::Path};

use outpost_testkit::{Server, file_uri};
use serde_json::{Value, json};

use super::{Replay, notifications};
use crate::outpost;

/// A server whose directory has a file, a directory and links.
async fn with_files() -> Server {
    let server = outpost().start().await;
    let dir = server.dir();
    fs::write(dir.join("f"), "").expect("a file");
    fs::create_dir(dir.join("d")).expect("a directory");
    symlink("d", dir.join("link")).expect("a link");
    symlink("nowhere", dir.join("dangling")).expect("a link");
    server
}

/// Asks to watch with this number.
async fn watching(replay: &Replay<'_>, id: u64, missing: Value, present: Option<&Path>) -> bool {
    let params = json!({"watchId": id, "missing": missing, "present": present.map(file_uri)});
    let result = replay.client.call("fs/watchMissing", params).await;
    assert_eq!(result.as_object().map(|members| members.len()), Some(1));
    result["watching"].as_bool().expect("a boolean")
}

#[tokio::test]
async fn request_of_the_stock_client_is_answered_and_fires_once() {
    let server = with_files().await;
    let mut replay = Replay::exec(&server).await;
    replay
        .run(
            r#"
            → fs/watchMissing {"watchId":1,"missing":["{dir}/.agents/skills"],"present":"{dir}/d"}
            ← {"watching":true}
            "#,
        )
        .await;
    // The first missing parent, then the path itself.
    fs::create_dir_all(server.dir().join(".agents/skills")).expect("directories");
    replay.run(r#"⇐ fs/missingChanged {"watchId":1}"#).await;
    replay
        .run(
            r#"
            → fs/watchMissing {"watchId":1,"missing":["{dir}/again"]}
            ← {"watching":false}
            → fs/unwatchMissing {}
            ← -32601 exec-server stub does not implement `fs/unwatchMissing` yet
            "#,
        )
        .await;
    let received = replay.client.received();
    assert_eq!(notifications(&received).count(), 1, "one shot");
}

#[tokio::test]
async fn unwatchable_paths_are_not_watched() {
    let server = with_files().await;
    let replay = Replay::exec(&server).await;
    let at = |name: &str| format!("{}/{name}", file_uri(server.dir()));
    let many = |count: usize| json!(vec![at("m"); count]);
    let deep = format!("file:///{}", "a/".repeat(65));
    let rows = [
        (json!([at("f")]), None, false),
        (json!([at("m"), at("d")]), None, false),
        (json!([at("dangling")]), None, false),
        (json!([at("link/x")]), None, false),
        (json!([at("dangling/x")]), None, false),
        (json!([at("f/x")]), None, false),
        (json!([at(&"n".repeat(256))]), None, false),
        (json!([at(&"n".repeat(255))]), None, true),
        (json!([deep]), None, false),
        (many(64), Some("f"), true),
        (many(65), None, false),
        (json!([at("m")]), Some("nosuch"), false),
        (json!([at("m")]), Some("link"), false),
        (json!([at("m")]), Some("d"), true),
        (json!([]), Some("f"), false),
        (json!(["file:///proc/outpost-missing"]), None, false),
        (json!(["file:///sys/outpost-missing"]), None, false),
        (json!(["file:///dev/outpost-missing"]), None, true),
        (json!(["file://other/x"]), None, false),
        (json!(["file:///C:/x"]), None, false),
    ];
    for (number, (missing, present, expected)) in rows.into_iter().enumerate() {
        let present = present.map(|name| server.dir().join(name));
        let id = number as u64 + 1;
        let answer = watching(&replay, id, missing.clone(), present.as_deref()).await;
        assert_eq!(answer, expected, "{missing} {present:?}");
    }
}

#[tokio::test]
async fn number_of_directories_is_limited() {
    let server = outpost().start().await;
    let replay = Replay::exec(&server).await;
    let depth = server.dir().components().count();
    // Every ancestor up to the root counts, and each sibling directory.
    for (id, siblings, expected) in [(1, 64 - depth, true), (2, 65 - depth, false)] {
        let missing: Vec<String> = (0..siblings)
            .map(|number| {
                let sibling = server.dir().join(number.to_string());
                fs::create_dir_all(&sibling).expect("a directory");
                file_uri(&sibling.join("missing"))
            })
            .collect();
        let answer = watching(&replay, id, json!(missing), None).await;
        assert_eq!(answer, expected, "{siblings} siblings, {depth} deep");
    }
}

#[tokio::test]
async fn later_requests_replace_the_watch_and_earlier_ones_do_not() {
    let server = with_files().await;
    let mut replay = Replay::exec(&server).await;
    replay
        .run(
            r#"
            → fs/watchMissing {"watchId":5,"missing":["{dir}/five"]}
            ← {"watching":true}
            → fs/watchMissing {"watchId":4,"missing":["{dir}/four"]}
            ← {"watching":false}
            → fs/watchMissing {"watchId":5,"missing":["{dir}/four"]}
            ← {"watching":false}
            → fs/watchMissing {"watchId":-1,"missing":[]}
            ← -32602 invalid number
            "#,
        )
        .await;
    fs::write(server.dir().join("four"), "").expect("a file");
    fs::write(server.dir().join("five"), "").expect("a file");
    replay
        .run(
            r#"
            ⇐ fs/missingChanged {"watchId":5}
            → fs/watchMissing {"watchId":6,"missing":["{dir}/six"]}
            ← {"watching":true}
            → fs/watchMissing {"watchId":7,"missing":["{dir}/f"]}
            ← {"watching":false}
            "#,
        )
        .await;
    // The refused request has dropped the watch.
    fs::write(server.dir().join("six"), "").expect("a file");
    replay
        .run(
            r#"
            → fs/watchMissing {"watchId":8,"missing":["{dir}/eight"]}
            ← {"watching":true}
            → fs/watchMissing {"watchId":9,"missing":[]}
            ← {"watching":false}
            "#,
        )
        .await;
    fs::write(server.dir().join("eight"), "").expect("a file");
    replay
        .run(
            r#"
            → fs/watchMissing {"watchId":18446744073709551615,"missing":["{dir}/last"]}
            ← {"watching":true}
            "#,
        )
        .await;
    fs::write(server.dir().join("last"), "").expect("a file");
    replay
        .run(r#"⇐ fs/missingChanged {"watchId":18446744073709551615}"#)
        .await;
}
