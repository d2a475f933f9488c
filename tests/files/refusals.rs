//! What every method about files refuses, and when.

use outpost_testkit::base64;
use serde_json::{Value, json};

use super::{file, refused, uri};
use crate::{outpost, ready};

/// Every method, with params that would be fine.
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
async fn paths_that_are_no_uris_of_this_host() {
    let (server, client) = ready().await;
    let native = file(&server, "a", "a");
    let native = native.to_str().unwrap();
    for path in [
        native,
        "a",
        "",
        "http://localhost/a",
        "file:///a?b",
        "file:///a%00",
    ] {
        for (method, params) in all(path) {
            let (code, message) = refused(&client, method, params).await;
            assert_eq!(code, -32602, "{method} {path}");
            assert!(message.starts_with("invalid params: "), "{message}");
        }
    }
    for (method, params) in all("file://elsewhere.example/a") {
        let expected = (-32600, "file: URI names another host".to_owned());
        assert_eq!(refused(&client, method, params).await, expected, "{method}");
    }
    let localhost = format!("file://localhost{native}");
    client.call("fs/readFile", json!({"path": localhost})).await;
    assert_eq!(
        std::fs::read(native).unwrap(),
        b"a",
        "nothing has touched it"
    );
}

#[tokio::test]
async fn a_managed_sandbox_is_refused_where_it_cannot_be_enforced() {
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
        let (code, message) = refused(&client, method, managed).await;
        assert_eq!(code, -32602, "{method}");
        let words = "sandbox intent cannot be enforced on this executor: bwrap isn't found on the server's PATH: install the package bubblewrap";
        assert_eq!(message, words, "{method}");
    }
    assert!(server.folder().join("a").exists(), "nothing was done");
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
async fn what_is_not_allowed() {
    let (_server, client) = ready().await;
    // Nobody may do that, root included.
    let answer = refused(
        &client,
        "fs/remove",
        json!({"path": "file:///proc/version"}),
    )
    .await;
    // The kernel tells root one thing and everybody else another.
    let words = match rustix::process::geteuid().is_root() {
        true => "Operation not permitted (os error 1)",
        false => "Permission denied (os error 13)",
    };
    assert_eq!(answer, (-32600, words.to_owned()));
}

#[tokio::test]
async fn a_limit_of_the_size_of_files_costs_the_write_and_nothing_else() {
    let server = outpost().after("ulimit -f 64").start().await;
    let client = server.client().await;
    let path = uri(&server.folder().join("a"));
    let expected = (-32603, "File too large (os error 27)".to_owned());
    let write = json!({"path": path, "dataBase64": base64(vec![1; 1 << 20])});
    assert_eq!(refused(&client, "fs/writeFile", write).await, expected);
    let stream = json!({"handleId": "s", "path": path});
    client.call("fs/createStream", stream).await;
    let block = json!({"handleId": "s", "offset": 1 << 20, "chunk": base64("x")});
    assert_eq!(refused(&client, "fs/writeBlock", block).await, expected);
    // Some file that is large: it was made without the limit.
    let large = file(&server, "large", vec![1; 1 << 20]);
    let copy = json!({"sourcePath": uri(&large), "destinationPath": path});
    assert_eq!(refused(&client, "fs/copy", copy).await, expected);
    client.is_alive().await;
}

#[tokio::test]
async fn before_the_handshake_is_over() {
    let server = outpost().start().await;
    let client = server.connect().await;
    let blocks = ["fs/readBlock", "fs/close", "fs/writeBlock", "fs/commit"];
    let methods = || {
        all("file:///a")
            .into_iter()
            .map(|(method, _)| method)
            .chain(blocks)
    };
    for method in methods() {
        let words = "client must call initialize before using filesystem methods";
        assert_eq!(
            refused(&client, method, json!({})).await,
            (-32600, words.to_owned())
        );
    }
    client.call("initialize", json!({"clientName": "x"})).await;
    for method in methods() {
        let words = "client must send initialized before using filesystem methods";
        assert_eq!(
            refused(&client, method, json!({})).await,
            (-32600, words.to_owned())
        );
    }
}

#[tokio::test]
async fn values_of_the_wrong_type() {
    let (_server, client) = ready().await;
    for (method, params) in all("file:///a") {
        for name in params.as_object().unwrap().keys() {
            let mut wrong = params.clone();
            wrong[name] = json!([1]);
            assert_eq!(
                client.fails(method, wrong).await.code,
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
    ];
    for (method, params) in wrong {
        assert_eq!(
            client.fails(method, params.clone()).await.code,
            -32602,
            "{method} {params}"
        );
    }
    client.is_alive().await;
}
