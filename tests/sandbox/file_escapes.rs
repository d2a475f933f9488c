//! File operations that would leave their sandbox.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use outpost_testkit::{base64, file_uri};
use serde_json::{Value, json};

use super::{Site, managed, special};
use crate::ready;

/// Every operation on something outside, named by the folder it is in as seen from inside.
fn operations(outside: &Path, workspace: &Path) -> Vec<(&'static str, Value)> {
    let secret = file_uri(&outside.join("secret"));
    let own = file_uri(&workspace.join("own"));
    let options = json!({
        "maxDepth": 4, "maxDirectories": 10, "maxEntries": 10, "followDirectorySymlinks": true,
    });
    let copy = |from: &str, to: &str| json!({"sourcePath": from, "destinationPath": to});
    vec![
        ("fs/readFile", json!({"path": secret})),
        ("fs/open", json!({"path": secret, "handleId": "h"})),
        ("fs/getMetadata", json!({"path": secret})),
        ("fs/canonicalize", json!({"path": secret})),
        ("fs/readDirectory", json!({"path": file_uri(outside)})),
        (
            "fs/walk",
            json!({"path": file_uri(outside), "options": options}),
        ),
        (
            "fs/copy",
            copy(&secret, &file_uri(&workspace.join("stolen"))),
        ),
        ("fs/copy", copy(&own, &secret)),
        ("fs/copy", copy(&own, &file_uri(&outside.join("planted")))),
        (
            "fs/writeFile",
            json!({"path": secret, "dataBase64": base64("changed")}),
        ),
        (
            "fs/createDirectory",
            json!({"path": file_uri(&outside.join("new"))}),
        ),
        ("fs/createStream", json!({"path": secret, "handleId": "s"})),
        ("fs/remove", json!({"path": secret, "force": false})),
    ]
}

/// How many of them only look.
const LOOKING: usize = 7;

fn confined(params: &Value, sandbox: &Value) -> Value {
    let mut params = params.clone();
    params["sandbox"] = sandbox.clone();
    params
}

/// What is in a folder, by name.
fn content(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).ok());
    entries
        .map(|entry| read(entry.expect("an entry").path()))
        .collect()
}

/// A folder beside the workspace with a secret in it, and a link to it in the workspace.
fn prepared(site: &Site) -> (PathBuf, PathBuf) {
    let outside = site.workspace().with_file_name("outside");
    let _ = std::fs::remove_dir_all(&outside);
    std::fs::create_dir(&outside).expect("a folder");
    std::fs::write(outside.join("secret"), "old").expect("a file");
    std::fs::write(site.workspace().join("own"), "own").expect("a file");
    let link = site.workspace().join("link");
    if !link.is_symlink() {
        std::os::unix::fs::symlink(&outside, &link).expect("a link");
    }
    let _ = std::fs::remove_file(site.workspace().join("stolen"));
    (outside, link)
}

#[tokio::test]
async fn what_is_outside_is_neither_seen_nor_changed_by_any_way_there() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let entries = [
        special("minimal", "read"),
        special("project_roots", "write"),
    ];
    let sandbox = managed(&site.workspace(), &entries);
    let (outside, link) = prepared(&site);
    // A path with `..` in it is the first of these once it is parsed.
    for way in [&outside, &link] {
        for (method, params) in operations(way, &site.workspace()) {
            prepared(&site);
            client.call(method, params.clone()).await;
            for handle in ["h", "s"] {
                client.call("fs/close", json!({"handleId": handle})).await;
            }
            prepared(&site);
            let before = content(&outside);
            let error = client.fails(method, confined(&params, &sandbox)).await;
            let words = format!("{method} {params}: {error:?}");
            assert!([-32004, -32600, -32603].contains(&error.code), "{words}");
            assert!(error.message.contains("(os error "), "{words}");
            assert_eq!(content(&outside), before, "{words}");
            assert!(!site.workspace().join("stolen").exists(), "{words}");
        }
    }
}

#[tokio::test]
async fn what_may_only_be_read_is_not_changed_through_a_link() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let (outside, link) = prepared(&site);
    let before = content(&outside);
    for way in [&outside, &link] {
        let operations = operations(way, &site.workspace());
        for (method, params) in &operations[..LOOKING] {
            client
                .call(method, confined(params, &site.sandbox(&[])))
                .await;
        }
        client.call("fs/close", json!({"handleId": "h"})).await;
        for (method, params) in &operations[LOOKING..] {
            let params = confined(params, &site.sandbox(&[]));
            let error = client.fails(method, params).await;
            let expected = (-32603, "Read-only file system (os error 30)");
            assert_eq!(error.parts(), expected, "{method}");
        }
    }
    assert_eq!(content(&outside), before);
}

#[tokio::test]
async fn what_is_denied_and_what_is_protected() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let workspace = site.workspace();
    std::fs::write(workspace.join("key.pem"), "secret").expect("a file");
    std::fs::write(workspace.join("own"), "own").expect("a file");
    std::os::unix::fs::symlink("key.pem", workspace.join("alias")).expect("a link");
    let pattern =
        json!({"path": {"type": "glob_pattern", "pattern": "**/*.pem"}, "access": "deny"});
    let sandbox = site.sandbox(&[pattern]);
    for name in ["key.pem", "alias"] {
        let path = file_uri(&workspace.join(name));
        let read = json!({"path": path});
        client.call("fs/readFile", read.clone()).await;
        let error = client.fails("fs/readFile", confined(&read, &sandbox)).await;
        assert_eq!(error.code, -32600, "{error:?}");
        let write = json!({"path": path, "dataBase64": base64("x")});
        client
            .fails("fs/writeFile", confined(&write, &sandbox))
            .await;
    }
    let key = file_uri(&workspace.join("key.pem"));
    let copy = json!({"sourcePath": key, "destinationPath": file_uri(&workspace.join("copy"))});
    client.fails("fs/copy", confined(&copy, &sandbox)).await;
    let own = file_uri(&workspace.join("own"));
    for name in [".git", ".agents", ".codex", ".aws"] {
        let path = file_uri(&workspace.join(name));
        let below = file_uri(&workspace.join(name).join("x"));
        let attempts = [
            (
                "fs/createDirectory",
                json!({"path": path, "recursive": false}),
            ),
            ("fs/createDirectory", json!({"path": below})),
            (
                "fs/writeFile",
                json!({"path": path, "dataBase64": base64("x")}),
            ),
            (
                "fs/writeFile",
                json!({"path": below, "dataBase64": base64("x")}),
            ),
            ("fs/createStream", json!({"path": below, "handleId": "s"})),
            (
                "fs/copy",
                json!({"sourcePath": own, "destinationPath": below}),
            ),
        ];
        for (method, params) in attempts {
            client.fails(method, confined(&params, &sandbox)).await;
        }
        assert!(!workspace.join(name).exists(), "{name} was left behind");
    }
    let kept = std::fs::read(workspace.join("key.pem")).expect("it is there");
    assert_eq!(kept, b"secret");
    assert!(!workspace.join("copy").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_turns_into_a_link_leads_nowhere() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let (outside, link) = prepared(&site);
    let folder = site.workspace().join("folder");
    std::fs::create_dir(&folder).expect("a folder");
    let over = AtomicBool::new(false);
    let swap = || {
        while !over.load(Ordering::Relaxed) {
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            let here = rustix::fs::CWD;
            rustix::fs::renameat_with(here, &folder, here, &link, flags).expect("a swap");
        }
    };
    let sandbox = site.sandbox(&[]);
    let write = json!({"path": file_uri(&folder.join("secret")), "dataBase64": base64("x")});
    let write = confined(&write, &sandbox);
    let stop = |over: &AtomicBool| over.store(true, Ordering::Relaxed);
    let mut written = 0;
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            scope.spawn(swap);
            tokio::runtime::Handle::current().block_on(async {
                for _ in 0..20 {
                    written +=
                        usize::from(client.try_call("fs/writeFile", write.clone()).await.is_ok());
                }
            });
            stop(&over);
        });
    });
    let secret = std::fs::read(outside.join("secret")).expect("it is there");
    assert_eq!(secret, b"old", "after {written} writes that met the folder");
}
