//! Tests file operations that would leave their sandbox.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use outpost_testkit::{base64, file_uri};
use serde_json::{Value, json};

use super::{SandboxDirs, managed_sandbox, special};
use crate::ready;

/// Every operation on a path outside. `outside` is the directory's path as seen from inside.
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

/// The number of operations that only read.
const READ_OPERATIONS: usize = 7;

fn sandboxed(params: &Value, sandbox: &Value) -> Value {
    let mut params = params.clone();
    params["sandbox"] = sandbox.clone();
    params
}

/// The files of a directory, by path.
fn content(dir: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).ok());
    entries
        .map(|entry| read(entry.expect("an entry").path()))
        .collect()
}

/// Creates a directory with a secret beside the workspace, and a symbolic link to it in the
/// workspace.
fn create_outside(dirs: &SandboxDirs) -> (PathBuf, PathBuf) {
    let outside = dirs.workspace().with_file_name("outside");
    let _ = std::fs::remove_dir_all(&outside);
    std::fs::create_dir(&outside).expect("a directory");
    std::fs::write(outside.join("secret"), "old").expect("a file");
    std::fs::write(dirs.workspace().join("own"), "own").expect("a file");
    let link = dirs.workspace().join("link");
    if !link.is_symlink() {
        std::os::unix::fs::symlink(&outside, &link).expect("a link");
    }
    let _ = std::fs::remove_file(dirs.workspace().join("stolen"));
    (outside, link)
}

#[tokio::test]
async fn outside_files_are_invisible_and_unchanged() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let entries = [
        special("minimal", "read"),
        special("project_roots", "write"),
    ];
    let sandbox = managed_sandbox(&dirs.workspace(), &entries);
    let (outside, link) = create_outside(&dirs);
    // A path with `..` is resolved when it is parsed, so it equals the first case.
    for way in [&outside, &link] {
        for (method, params) in operations(way, &dirs.workspace()) {
            create_outside(&dirs);
            client.call(method, params.clone()).await;
            for handle in ["h", "s"] {
                client.call("fs/close", json!({"handleId": handle})).await;
            }
            create_outside(&dirs);
            let before = content(&outside);
            let error = client
                .call_fails(method, sandboxed(&params, &sandbox))
                .await;
            let message = format!("{method} {params}: {error:?}");
            assert!([-32004, -32600, -32603].contains(&error.code), "{message}");
            assert!(error.message.contains("(os error "), "{message}");
            assert_eq!(content(&outside), before, "{message}");
            assert!(!dirs.workspace().join("stolen").exists(), "{message}");
        }
    }
}

#[tokio::test]
async fn read_only_file_is_not_changed_through_a_link() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let (outside, link) = create_outside(&dirs);
    let before = content(&outside);
    for way in [&outside, &link] {
        let operations = operations(way, &dirs.workspace());
        for (method, params) in &operations[..READ_OPERATIONS] {
            client
                .call(method, sandboxed(params, &dirs.sandbox(&[])))
                .await;
        }
        client.call("fs/close", json!({"handleId": "h"})).await;
        for (method, params) in &operations[READ_OPERATIONS..] {
            let params = sandboxed(params, &dirs.sandbox(&[]));
            let error = client.call_fails(method, params).await;
            let expected = (-32603, "Read-only file system (os error 30)");
            assert_eq!(error.parts(), expected, "{method}");
        }
    }
    assert_eq!(content(&outside), before);
}

#[tokio::test]
async fn denied_and_protected_paths_are_enforced() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let workspace = dirs.workspace();
    std::fs::write(workspace.join("key.pem"), "secret").expect("a file");
    std::fs::write(workspace.join("own"), "own").expect("a file");
    std::os::unix::fs::symlink("key.pem", workspace.join("alias")).expect("a link");
    let pattern =
        json!({"path": {"type": "glob_pattern", "pattern": "**/*.pem"}, "access": "deny"});
    let sandbox = dirs.sandbox(&[pattern]);
    for name in ["key.pem", "alias"] {
        let path = file_uri(&workspace.join(name));
        let read = json!({"path": path});
        client.call("fs/readFile", read.clone()).await;
        let error = client
            .call_fails("fs/readFile", sandboxed(&read, &sandbox))
            .await;
        assert_eq!(error.code, -32600, "{error:?}");
        let write = json!({"path": path, "dataBase64": base64("x")});
        client
            .call_fails("fs/writeFile", sandboxed(&write, &sandbox))
            .await;
    }
    let key = file_uri(&workspace.join("key.pem"));
    let copy = json!({"sourcePath": key, "destinationPath": file_uri(&workspace.join("copy"))});
    client
        .call_fails("fs/copy", sandboxed(&copy, &sandbox))
        .await;
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
            client
                .call_fails(method, sandboxed(&params, &sandbox))
                .await;
        }
        assert!(!workspace.join(name).exists(), "{name} was left behind");
    }
    let kept = std::fs::read(workspace.join("key.pem")).expect("it exists");
    assert_eq!(kept, b"secret");
    assert!(!workspace.join("copy").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn directory_swapped_for_a_link_leads_nowhere() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let (outside, link) = create_outside(&dirs);
    let dir = dirs.workspace().join("folder");
    std::fs::create_dir(&dir).expect("a directory");
    let over = AtomicBool::new(false);
    let swap = || {
        while !over.load(Ordering::Relaxed) {
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            let here = rustix::fs::CWD;
            rustix::fs::renameat_with(here, &dir, here, &link, flags).expect("renamed");
        }
    };
    let sandbox = dirs.sandbox(&[]);
    let write = json!({"path": file_uri(&dir.join("secret")), "dataBase64": base64("x")});
    let write = sandboxed(&write, &sandbox);
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
    let secret = std::fs::read(outside.join("secret")).expect("it exists");
    assert_eq!(secret, b"old", "after {written} writes that met the folder");
}

#[tokio::test]
async fn operations_work_under_a_plan_that_shows_the_workspace_only() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let (outside, _) = create_outside(&dirs);
    let entries = [special("project_roots", "write")];
    let sandbox = managed_sandbox(&dirs.workspace(), &entries);
    let own = file_uri(&dirs.workspace().join("own"));
    let read = sandboxed(&json!({"path": own}), &sandbox);
    let result = client.call("fs/readFile", read).await;
    assert_eq!(result["dataBase64"], base64("own"));
    let new = dirs.workspace().join("new");
    let write = json!({"path": file_uri(&new), "dataBase64": base64("x")});
    client
        .call("fs/writeFile", sandboxed(&write, &sandbox))
        .await;
    assert_eq!(std::fs::read(&new).expect("a file"), b"x");
    for hidden in ["/usr", "/lib", "/lib64", "/etc"] {
        let list = sandboxed(&json!({"path": file_uri(Path::new(hidden))}), &sandbox);
        let error = client.call_fails("fs/readDirectory", list).await;
        assert_eq!(error.code, -32004, "{hidden}");
    }
    // The libraries of this program are those of the server, whose own list only root may read.
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let mapped = maps.lines().filter_map(|line| line.split_once("  /"));
    let mapped: std::collections::BTreeSet<_> = mapped.map(|(_, path)| path.trim()).collect();
    assert!(mapped.iter().any(|path| path.contains("ld-")), "{mapped:?}");
    let mapped = mapped.into_iter().map(|path| format!("/{path}"));
    for path in mapped.chain([outside.join("secret").display().to_string()]) {
        let read = json!({"path": file_uri(Path::new(&path))});
        client.call("fs/getMetadata", read.clone()).await;
        for method in ["fs/readFile", "fs/getMetadata", "fs/canonicalize"] {
            let error = client.call_fails(method, sandboxed(&read, &sandbox)).await;
            let expected = (-32004, "No such file or directory (os error 2)");
            assert_eq!(error.parts(), expected, "{method} {path}");
        }
    }
}
