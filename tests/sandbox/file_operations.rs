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
