//! Tests the errors of all `fs/*` methods.

use outpost_testkit::base64;
use serde_json::{Value, json};

use super::{error_of, file, uri};
use crate::{outpost, ready};

/// Every method with valid params.
fn all(path: &str) -> Vec<(&'static str, Value)> {
    let options = json!({
        "maxDepth": 1, "maxDirectories": 1, "maxEntries": 1, "followDirectorySymlinks": false,
    });
    vec![
        ("fs/readFile", json!({"path": path})),
        ("fs/open", json!({"handleId": "h", "path": path})),
        ("fs/writeFile", json!({"path": path, "dataBase64": ""})),
        ("fs/createDirectory", json!({"path": path})),
        ("fs/getMetadata", json!({"path": path})),
        ("fs/canonicalize", json!({"path": path})),
        ("fs/readDirectory", json!({"path": path})),
        ("fs/walk", json!({"path": path, "options": options})),
        ("fs/remove", json!({"path": path})),
        (
            "fs/copy",
            json!({"sourcePath": path, "destinationPath": path, "recursive": true}),
        ),
        ("fs/createStream", json!({"handleId": "s", "path": path})),
    ]
}

#[tokio::test]
async fn foreign_and_invalid_uris_are_rejected() {
    let (server, client) = ready().await;
    let native_path = file(&server, "a", "a");
    let native_path = native_path.to_str().unwrap();
    for path in [
        native_path,
        "a",
        "",
        "http://localhost/a",
        "file:///a?b",
        "file:///a%00",
    ] {
        for (method, params) in all(path) {
            let (code, _) = error_of(&client, method, params).await;
            assert_eq!(code, -32602, "{method} {path}");
        }
    }
    for (method, params) in all("file://elsewhere.example/a") {
        let expected = (
            -32600,
            "'file://elsewhere.example/a' is invalid on 'linux'".to_owned(),
        );
        assert_eq!(
            error_of(&client, method, params).await,
            expected,
            "{method}"
        );
    }
    let localhost = format!("file://localhost{native_path}");
    client.call("fs/readFile", json!({"path": localhost})).await;
    assert_eq!(
        std::fs::read(native_path).unwrap(),
        b"a",
        "the file is unchanged"
    );
}

#[tokio::test]
async fn unenforceable_sandbox_is_rejected() {
    let server = outpost().env("PATH", "/nowhere").start().await;
    let client = server.client().await;
    let path = uri(&file(&server, "a", "a"));
    for (method, params) in all(&path) {
        let mut managed = params.clone();
        managed["sandbox"] = json!({"permissions": {
            "type": "managed",
            "file_system": {"type": "unrestricted"},
            "network": "restricted",
        }});
        let (code, message) = error_of(&client, method, managed).await;
        assert_eq!(code, -32602, "{method}");
        let error_text = "sandbox intent cannot be enforced on this executor: bwrap isn't found on the server's PATH: install the package bubblewrap";
        assert_eq!(message, error_text, "{method}");
    }
    assert!(server.dir().join("a").exists(), "nothing was done");
    for sandbox in [
        json!(null),
        json!({"permissions": {"type": "disabled"}}),
        json!({"permissions": {"type": "external"}}),
    ] {
        let params = json!({"path": path, "sandbox": sandbox});
        client.call("fs/readFile", params).await;
    }
}

#[tokio::test]
async fn permission_errors_are_reported() {
    let (_server, client) = ready().await;
    // Not even root may do that.
    let error = error_of(
        &client,
        "fs/remove",
        json!({"path": "file:///proc/version"}),
    )
    .await;
    // The kernel returns EPERM to root and EACCES to other users.
    let error_text = match rustix::process::geteuid().is_root() {
        true => "Operation not permitted (os error 1)",
        false => "Permission denied (os error 13)",
    };
    assert_eq!(error, (-32600, error_text.to_owned()));
}

#[tokio::test]
async fn file_size_limit_fails_only_the_write() {
    let server = outpost().after_shell("ulimit -f 64").start().await;
    let client = server.client().await;
    let path = uri(&server.dir().join("a"));
    let expected = (-32603, "File too large (os error 27)".to_owned());
    let write = json!({"path": path, "dataBase64": base64(vec![1; 1 << 20])});
    assert_eq!(error_of(&client, "fs/writeFile", write).await, expected);
    let stream = json!({"handleId": "s", "path": path});
    client.call("fs/createStream", stream).await;
    let block = json!({"handleId": "s", "offset": 1 << 20, "chunk": base64("x")});
    assert_eq!(error_of(&client, "fs/writeBlock", block).await, expected);
    // Created by the test, which the server's file size limit doesn't apply to.
    let large = file(&server, "large", vec![1; 1 << 20]);
    let copy = json!({"sourcePath": uri(&large), "destinationPath": path});
    assert_eq!(error_of(&client, "fs/copy", copy).await, expected);
    client.check_alive().await;
}

#[tokio::test]
async fn requests_need_the_handshake() {
    let server = outpost().start().await;
    let client = server.connect().await;
    let block = json!({"handleId": "h", "offset": 0, "len": 1, "chunk": ""});
    let blocks = ["fs/readBlock", "fs/close", "fs/writeBlock", "fs/commit"];
    let methods = || {
        let blocks = blocks.map(|method| (method, block.clone()));
        all("file:///a").into_iter().chain(blocks)
    };
    for (method, params) in methods() {
        let error_text = "client must call initialize before using filesystem methods";
        assert_eq!(
            error_of(&client, method, params).await,
            (-32600, error_text.to_owned())
        );
    }
    client.call("initialize", json!({"clientName": "x"})).await;
    for (method, params) in methods() {
        let error_text = "client must send initialized before using filesystem methods";
        assert_eq!(
            error_of(&client, method, params).await,
            (-32600, error_text.to_owned())
        );
    }
}

#[tokio::test]
async fn wrong_types_are_rejected() {
    let (_server, client) = ready().await;
    for (method, params) in all("file:///a") {
        for name in params.as_object().unwrap().keys() {
            let mut wrong = params.clone();
            wrong[name] = json!([1]);
            assert_eq!(
                client.call_fails(method, wrong).await.code,
                -32602,
                "{method} {name}"
            );
        }
    }
    let wrong = [
        (
            "fs/readBlock",
            json!({"handleId": "h", "offset": -1, "len": 1}),
        ),
        (
            "fs/readBlock",
            json!({"handleId": "h", "offset": 0, "len": "1"}),
        ),
        ("fs/close", json!({"handleId": 1})),
        (
            "fs/writeBlock",
            json!({"handleId": "s", "offset": 0, "chunk": 1}),
        ),
        ("fs/commit", json!({})),
        ("fs/watch", json!({"watchId": 1, "path": "file:///"})),
        ("fs/unwatch", json!({})),
    ];
    for (method, params) in wrong {
        assert_eq!(
            client.call_fails(method, params.clone()).await.code,
            -32602,
            "{method} {params}"
        );
    }
    client.check_alive().await;
}
