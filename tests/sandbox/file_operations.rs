//! File operations that stay in their sandbox do what they do without one.

use outpost_testkit::{base64, file_uri, unbase64};
use serde_json::{Value, json};

use super::Site;
use crate::{outpost, ready};

fn confined(mut params: Value, site: &Site) -> Value {
    params["sandbox"] = site.sandbox(&[]);
    params
}

#[tokio::test]
async fn each_does_within_what_is_granted_what_it_does_without() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let call =
        async |method: &str, params: Value| client.call(method, confined(params, &site)).await;
    let at = |name: &str| file_uri(&site.workspace().join(name));
    call("fs/createDirectory", json!({"path": at("a/b")})).await;
    let write = json!({"path": at("a/b/file"), "dataBase64": base64("content")});
    call("fs/writeFile", write).await;
    let read = call("fs/readFile", json!({"path": at("a/b/file")})).await;
    assert_eq!(unbase64(&read["dataBase64"]), b"content");
    let copy = json!({"sourcePath": at("a"), "destinationPath": at("c"), "recursive": true});
    call("fs/copy", copy).await;
    std::os::unix::fs::symlink("c/b/file", site.workspace().join("link")).expect("a link");
    let options = json!({
        "maxDepth": 4, "maxDirectories": 10, "maxEntries": 10, "followDirectorySymlinks": false,
    });
    // What only looks has the same answer as without a sandbox.
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
    // Nor does anybody find what only keeps a name from being made.
    let git = confined(json!({"path": at(".git")}), &site);
    assert_eq!(client.fails("fs/getMetadata", git).await.code, -32004);
    let linked = json!({"path": at("link"), "followSymlinks": false});
    let error = client.fails("fs/readFile", confined(linked, &site)).await;
    assert_eq!(error.parts(), (-32600, "path contains a symbolic link"));
    call("fs/remove", json!({"path": at("c")})).await;
    assert!(!site.workspace().join("c").exists());
    let gone = client
        .fails("fs/readFile", confined(json!({"path": at("link")}), &site))
        .await;
    assert_eq!(
        gone.parts(),
        (-32004, "No such file or directory (os error 2)")
    );
}

/// Every operation on a path. The path may be anything, `empty` is a directory with nothing in it, and
/// `copy` isn't there.
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
async fn a_protected_name_that_is_absent_is_missing_and_cannot_be_made() {
    const MISSING: (i64, &str) = (-32004, "No such file or directory (os error 2)");
    const READ_ONLY: (i64, &str) = (-32603, "Read-only file system (os error 30)");
    let (_server, client) = ready().await;
    let site = Site::new();
    let at = |name: &str| json!(file_uri(&site.workspace().join(name)));
    std::fs::create_dir(site.workspace().join("empty")).expect("a directory");
    // Once without anything in its place, and once with what another process has there.
    for round in ["alone", "beside another"] {
        for (at_all, (method, params)) in every_operation(&at(".git"), &at("empty"), &at("copy"))
            .into_iter()
            .enumerate()
        {
            let error = client.fails(method, confined(params, &site)).await;
            let expected = if at_all < 8 { MISSING } else { READ_ONLY };
            assert_eq!(error.parts(), expected, "{method}, {round}");
        }
        let remove = confined(json!({"path": at(".git")}), &site);
        assert_eq!(client.call("fs/remove", remove).await, json!({}));
        assert!(!site.workspace().join("copy").exists());
        if round == "alone" {
            assert!(!site.workspace().join(".git").exists());
            client.start(site.script("other", "read x").stdin()).await;
            assert!(site.workspace().join(".git").exists());
        }
    }
}

#[tokio::test]
async fn what_is_denied_is_so_for_every_operation() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let workspace = site.workspace();
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
    let sandbox = site.sandbox(&denied);
    let confined = |mut params: Value| {
        params["sandbox"] = sandbox.clone();
        params
    };
    let words = (-32600, "Permission denied (os error 13)");
    for name in ["file", "folder", "key.pem"] {
        for (method, params) in every_operation(&at(name), &at("empty"), &at("copy")) {
            let error = client.fails(method, confined(params)).await;
            assert_eq!(error.parts(), words, "{method} of {name}");
        }
    }
    // What is below it is the system's own answer, and what leads there is no way around.
    for (method, name) in [
        ("fs/readFile", "folder/x"),
        ("fs/getMetadata", "folder/x"),
        ("fs/createDirectory", "folder/new"),
        ("fs/readFile", "link"),
    ] {
        let error = client
            .fails(method, confined(json!({"path": at(name)})))
            .await;
        assert_eq!(error.parts(), words, "{method} of {name}");
    }
    let link = json!({"path": at("link"), "followSymlinks": false});
    let error = client.fails("fs/readFile", confined(link)).await;
    assert_eq!(error.parts(), (-32600, "path contains a symbolic link"));
    assert!(!workspace.join("copy").exists());
    assert_eq!(
        std::fs::read(workspace.join("file")).expect("it is there"),
        b"secret"
    );
}

#[tokio::test]
async fn a_large_file_is_written_and_read_whole() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let path = file_uri(&site.workspace().join("large"));
    let bytes: Vec<u8> = (0..20_000_000_u32).map(|n| (n % 251) as u8).collect();
    let write = json!({"path": path, "dataBase64": base64(&bytes)});
    client.call("fs/writeFile", confined(write, &site)).await;
    let read = client
        .call("fs/readFile", confined(json!({"path": path}), &site))
        .await;
    assert!(unbase64(&read["dataBase64"]) == bytes);
}

#[tokio::test]
async fn the_weaker_level_confines_them_too() {
    let server = outpost()
        .env("OUTPOST_SANDBOX_LEVEL", "landlock")
        .start()
        .await;
    let client = server.client().await;
    let site = Site::new();
    let outside = site.outside("outside");
    for (path, fine) in [
        (site.workspace().join("inside"), true),
        (outside.clone(), false),
    ] {
        let write = json!({"path": file_uri(&path), "dataBase64": base64("x")});
        let outcome = client
            .try_call("fs/writeFile", confined(write, &site))
            .await;
        assert_eq!(outcome.is_ok(), fine, "{outcome:?}");
    }
    assert!(!outside.exists());
}
