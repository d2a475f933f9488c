//! Tests that permitted file operations behave the same with and without a sandbox.

use outpost_testkit::{base64, file_uri, unbase64};
use serde_json::{Value, json};

use super::SandboxDirs;
use crate::{outpost, ready};

fn sandboxed(mut params: Value, dirs: &SandboxDirs) -> Value {
    params["sandbox"] = dirs.sandbox(&[]);
    params
}

#[tokio::test]
async fn granted_operations_work_as_without_a_sandbox() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let call =
        async |method: &str, params: Value| client.call(method, sandboxed(params, &dirs)).await;
    let at = |name: &str| file_uri(&dirs.workspace().join(name));
    call("fs/createDirectory", json!({"path": at("a/b")})).await;
    let write = json!({"path": at("a/b/file"), "dataBase64": base64("content")});
    call("fs/writeFile", write).await;
    let read = call("fs/readFile", json!({"path": at("a/b/file")})).await;
    assert_eq!(unbase64(&read["dataBase64"]), b"content");
    let copy = json!({"sourcePath": at("a"), "destinationPath": at("c"), "recursive": true});
    call("fs/copy", copy).await;
    std::os::unix::fs::symlink("c/b/file", dirs.workspace().join("link")).expect("a link");
    let options = json!({
        "maxDepth": 4, "maxDirectories": 10, "maxEntries": 10, "followDirectorySymlinks": false,
    });
    // Read operations have the same result as without a sandbox.
    for (method, params) in [
        ("fs/getMetadata", json!({"path": at("link")})),
        ("fs/canonicalize", json!({"path": at("link")})),
        ("fs/readDirectory", json!({"path": at("")})),
        ("fs/walk", json!({"path": at(""), "options": options})),
        ("fs/readFile", json!({"path": at("link")})),
    ] {
        let free = client.call(method, params.clone()).await;
        assert_eq!(call(method, params).await, free, "{method}");
    }
    // A placeholder is not visible.
    let git = sandboxed(json!({"path": at(".git")}), &dirs);
    assert_eq!(client.call_fails("fs/getMetadata", git).await.code, -32004);
    let linked = json!({"path": at("link"), "followSymlinks": false});
    let error = client
        .call_fails("fs/readFile", sandboxed(linked, &dirs))
        .await;
    assert_eq!(error.parts(), (-32600, "path contains a symbolic link"));
    call("fs/remove", json!({"path": at("c")})).await;
    assert!(!dirs.workspace().join("c").exists());
    let gone = client
        .call_fails("fs/readFile", sandboxed(json!({"path": at("link")}), &dirs))
        .await;
    assert_eq!(
        gone.parts(),
        (-32004, "No such file or directory (os error 2)")
    );
}

/// Every operation on `path`. `empty` is an empty directory, and `copy` doesn't exist.
fn every_operation(path: &Value, empty: &Value, copy: &Value) -> [(&'static str, Value); 12] {
    let options = json!({
        "maxDepth": 4, "maxDirectories": 10, "maxEntries": 10, "followDirectorySymlinks": false,
    });
    let from = json!({"sourcePath": path, "destinationPath": copy, "recursive": true});
    let to = json!({"sourcePath": empty, "destinationPath": path, "recursive": true});
    [
        ("fs/readFile", json!({"path": path})),
        ("fs/open", json!({"path": path, "handleId": "h"})),
        ("fs/getMetadata", json!({"path": path})),
        ("fs/canonicalize", json!({"path": path})),
        ("fs/readDirectory", json!({"path": path})),
        ("fs/walk", json!({"path": path, "options": options})),
        ("fs/copy", from),
        ("fs/remove", json!({"path": path, "force": false})),
        ("fs/copy", to),
        ("fs/writeFile", json!({"path": path, "dataBase64": ""})),
        ("fs/createDirectory", json!({"path": path})),
        ("fs/createStream", json!({"path": path, "handleId": "h"})),
    ]
}

#[tokio::test]
async fn absent_protected_name_is_missing_and_cannot_be_created() {
    const MISSING: (i64, &str) = (-32004, "No such file or directory (os error 2)");
    const READ_ONLY: (i64, &str) = (-32603, "Read-only file system (os error 30)");
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let at = |name: &str| json!(file_uri(&dirs.workspace().join(name)));
    std::fs::create_dir(dirs.workspace().join("empty")).expect("a directory");
    // Once without a placeholder, and once with the placeholder of another process.
    for round in ["alone", "beside another"] {
        for (index, (method, params)) in every_operation(&at(".git"), &at("empty"), &at("copy"))
            .into_iter()
            .enumerate()
        {
            let error = client.call_fails(method, sandboxed(params, &dirs)).await;
            let expected = if index < 8 { MISSING } else { READ_ONLY };
            assert_eq!(error.parts(), expected, "{method}, {round}");
        }
        let remove = sandboxed(json!({"path": at(".git")}), &dirs);
        assert_eq!(client.call("fs/remove", remove).await, json!({}));
        assert!(!dirs.workspace().join("copy").exists());
        if round == "alone" {
            assert!(!dirs.workspace().join(".git").exists());
            client.start(dirs.script("other", "read x").stdin()).await;
            assert!(dirs.workspace().join(".git").exists());
        }
    }
}

#[tokio::test]
async fn denied_path_is_denied_for_every_operation() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let workspace = dirs.workspace();
    for name in ["empty", "folder/below"] {
        std::fs::create_dir_all(workspace.join(name)).expect("a directory");
    }
    for name in ["file", "key.pem", "folder/x"] {
        std::fs::write(workspace.join(name), "secret").expect("a file");
    }
    std::os::unix::fs::symlink("file", workspace.join("link")).expect("a link");
    let at = |name: &str| json!(file_uri(&workspace.join(name)));
    let denied = [
        json!({"path": {"type": "path", "path": at("file")}, "access": "deny"}),
        json!({"path": {"type": "path", "path": at("folder")}, "access": "deny"}),
        json!({"path": {"type": "glob_pattern", "pattern": "**/*.pem"}, "access": "deny"}),
    ];
    let sandbox = dirs.sandbox(&denied);
    let sandboxed = |mut params: Value| {
        params["sandbox"] = sandbox.clone();
        params
    };
    let message = (-32600, "Permission denied (os error 13)");
    for name in ["file", "folder", "key.pem"] {
        for (method, params) in every_operation(&at(name), &at("empty"), &at("copy")) {
            let error = client.call_fails(method, sandboxed(params)).await;
            assert_eq!(error.parts(), message, "{method} of {name}");
        }
    }
    // Paths below a denied directory fail in the kernel, and a symbolic link is no way around.
    for (method, name) in [
        ("fs/readFile", "folder/x"),
        ("fs/getMetadata", "folder/x"),
        ("fs/createDirectory", "folder/new"),
        ("fs/readFile", "link"),
    ] {
        let error = client
            .call_fails(method, sandboxed(json!({"path": at(name)})))
            .await;
        assert_eq!(error.parts(), message, "{method} of {name}");
    }
    let link = json!({"path": at("link"), "followSymlinks": false});
    let error = client.call_fails("fs/readFile", sandboxed(link)).await;
    assert_eq!(error.parts(), (-32600, "path contains a symbolic link"));
    assert!(!workspace.join("copy").exists());
    assert_eq!(
        std::fs::read(workspace.join("file")).expect("it exists"),
        b"secret"
    );
}

#[tokio::test]
async fn large_file_is_written_and_read_whole() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let path = file_uri(&dirs.workspace().join("large"));
    let bytes: Vec<u8> = (0..20_000_000_u32).map(|n| (n % 251) as u8).collect();
    let write = json!({"path": path, "dataBase64": base64(&bytes)});
    client.call("fs/writeFile", sandboxed(write, &dirs)).await;
    let read = client
        .call("fs/readFile", sandboxed(json!({"path": path}), &dirs))
        .await;
    assert!(unbase64(&read["dataBase64"]) == bytes);
}

#[tokio::test]
async fn landlock_level_confines_file_operations() {
    let server = outpost()
        .env("OUTPOST_SANDBOX_LEVEL", "landlock")
        .start()
        .await;
    let client = server.client().await;
    let dirs = SandboxDirs::new();
    let outside = dirs.outside("outside");
    for (path, fine) in [
        (dirs.workspace().join("inside"), true),
        (outside.clone(), false),
    ] {
        let write = json!({"path": file_uri(&path), "dataBase64": base64("x")});
        let outcome = client
            .try_call("fs/writeFile", sandboxed(write, &dirs))
            .await;
        assert_eq!(outcome.is_ok(), fine, "{outcome:?}");
    }
    assert!(!outside.exists());
}
