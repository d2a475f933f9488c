//! Tests `fs/watch` on both kinds of connections, and `fs/watchMissing`.

use std::fs;

use outpost_testkit::{Client, Server, file_uri as uri};
use serde_json::{Value, json};

use super::{error_of, file};
use crate::{outpost, ready};

/// Connects a client of the app-server.
async fn app_client(server: &Server) -> Client {
    let client = server.connect().await;
    let info = json!({"clientInfo": {"name": "testkit", "version": "1"}});
    client.call("initialize", info).await;
    client
}

/// Waits for the notification of a method with this number, from 0.
async fn notification(client: &Client, method: &str, number: usize) -> Value {
    client
        .until(&format!("{method} {number}"), |received| {
            let mut all = received.messages.iter();
            let mut all = all.by_ref().filter(|message| message["method"] == method);
            all.nth(number).map(|message| message["params"].clone())
        })
        .await
}

/// The ids of the notifications of a method so far, after everything that was sent before.
async fn notified(client: &Client, method: &str) -> Vec<Value> {
    client.call("fs/unwatch", json!({"watchId": "none"})).await;
    client
        .until("notifications", |received| {
            let messages = received.messages.iter();
            let all = messages.filter(|message| message["method"] == method);
            Some(all.map(|message| message["params"].clone()).collect())
        })
        .await
}

#[tokio::test]
async fn missing_path_is_announced_once() {
    let (server, client) = ready().await;
    let path = server.dir().canonicalize().expect("a path").join(".agents");
    let info = client.call("environment/info", json!({})).await;
    assert_eq!(info["capabilities"]["fsWatchMissing"], true);
    let params = json!({"watchId": 1, "missing": [uri(&path)], "present": null});
    let result = client.call("fs/watchMissing", params).await;
    assert_eq!(result, json!({"watching": true}));
    fs::create_dir(&path).expect("a directory");
    let fired = notification(&client, "fs/missingChanged", 0).await;
    assert_eq!(fired, json!({"watchId": 1}));
    fs::remove_dir(&path).expect("a removal");
    let again = json!({"watchId": 1, "missing": [uri(&path)]});
    let result = client.call("fs/watchMissing", again).await;
    assert_eq!(result, json!({"watching": false}), "the id is used");
    let foreign = ["file://other/x", "file:///C:/x"];
    for (id, missing) in foreign.into_iter().enumerate() {
        let params = json!({"watchId": id + 2, "missing": [missing]});
        let result = client.call("fs/watchMissing", params).await;
        assert_eq!(result, json!({"watching": false}), "{missing}");
    }
    assert_eq!(notified(&client, "fs/missingChanged").await.len(), 1);
}

#[tokio::test]
async fn watches_of_missing_paths_belong_to_their_connection() {
    let (server, first) = ready().await;
    let path = server.dir().canonicalize().expect("a path").join("missing");
    let watch = async |client: &Client, id: u64| {
        let params = json!({"watchId": id, "missing": [uri(&path)]});
        client.call("fs/watchMissing", params).await
    };
    assert_eq!(watch(&first, 2000).await, json!({"watching": true}));
    let second = server.client().await;
    assert_eq!(watch(&second, 1).await, json!({"watching": true}));
    drop(first);
    fs::write(&path, "").expect("a file");
    let fired = notification(&second, "fs/missingChanged", 0).await;
    assert_eq!(fired, json!({"watchId": 1}));
}

#[tokio::test]
async fn undecodable_requests_to_watch_missing_paths_use_no_id() {
    let (server, client) = ready().await;
    let path = server.dir().canonicalize().expect("a path").join("missing");
    let armed = json!({"watchId": 5, "missing": [uri(&path)]});
    let result = client.call("fs/watchMissing", armed).await;
    assert_eq!(result, json!({"watching": true}));
    let missing = json!([uri(&path)]);
    let rows = [
        (json!({"missing": missing}), "missing field `watchId`"),
        (json!({"watchId": 9}), "missing field `missing`"),
        (
            json!({"watchId": "a", "missing": missing}),
            "invalid type: string \"a\", expected u64",
        ),
        (json!({"watchId": -1, "missing": missing}), "invalid number"),
        (
            json!({"watchId": 1.5, "missing": missing}),
            "invalid number",
        ),
        (
            json!({"watchId": 9, "missing": "x"}),
            "invalid type: string \"x\", expected a sequence",
        ),
        (
            json!({"watchId": 9, "missing": ["/native"]}),
            "invalid URI: relative URL without a base",
        ),
        (
            json!({"watchId": 9, "missing": ["http://host/x"]}),
            "unsupported path URI scheme `http`",
        ),
        (
            json!({"watchId": 9, "missing": ["file:///x?y"]}),
            "query parameters are not allowed in path URIs",
        ),
        (
            json!({"watchId": 9, "missing": [], "present": "file:///x/a%00b"}),
            "'file:///x/a%00b' is invalid on 'linux'",
        ),
    ];
    for (params, message) in rows {
        let error = error_of(&client, "fs/watchMissing", params.clone()).await;
        assert_eq!(error, (-32602, message.to_owned()), "{params}");
    }
    let early = server.connect().await;
    let params = json!({"watchId": 1, "missing": [uri(&path)]});
    let error = error_of(&early, "fs/watchMissing", params).await;
    let message = "client must call initialize before using filesystem methods";
    assert_eq!(error, (-32600, message.to_owned()));
    fs::write(&path, "").expect("a file");
    let fired = notification(&client, "fs/missingChanged", 0).await;
    assert_eq!(fired, json!({"watchId": 5}), "the watch stayed armed");
}

#[tokio::test]
async fn app_server_client_watches_native_paths() {
    let server = outpost().start().await;
    let client = app_client(&server).await;
    let directory = server.dir().join("d");
    fs::create_dir(&directory).expect("a directory");
    let text = directory.to_str().expect("text");
    let params = json!({"watchId": "dir", "path": format!("{text}/")});
    let result = client.call("fs/watch", params.clone()).await;
    assert_eq!(result, json!({"path": text}), "without the final slash");
    let error = error_of(&client, "fs/watch", params).await;
    assert_eq!(error, (-32600, "watchId already exists: dir".to_owned()));
    for name in ["b", "a", "a"] {
        fs::write(directory.join(name), "").expect("a file");
    }
    let changed = notification(&client, "fs/changed", 0).await;
    let paths = json!([format!("{text}/a"), format!("{text}/b")]);
    assert_eq!(changed, json!({"watchId": "dir", "changedPaths": paths}));
    let unwatched = client.call("fs/unwatch", json!({"watchId": "dir"})).await;
    assert_eq!(unwatched, json!({}));
    fs::write(directory.join("c"), "").expect("a file");

    // Another watch with the same id, and one with an empty id.
    let file = directory.join("f");
    for id in ["dir", "", &"i".repeat(2000)] {
        let params = json!({"watchId": id, "path": file});
        let result = client.call("fs/watch", params).await;
        assert_eq!(result, json!({"path": file}));
    }
    fs::write(&file, "").expect("a file");
    for number in 1..4 {
        let changed = notification(&client, "fs/changed", number).await;
        assert_eq!(changed["changedPaths"], json!([file]));
    }
}

#[tokio::test]
async fn app_server_client_gets_its_errors() {
    let server = outpost().start().await;
    let client = app_client(&server).await;
    for path in ["rel", "file:///x", ""] {
        let params = json!({"watchId": "a", "path": path});
        let error = error_of(&client, "fs/watch", params).await;
        let message = "Invalid request: AbsolutePathBuf deserialized without a base path";
        assert_eq!(error, (-32600, message.to_owned()), "{path}");
    }
    let unknown = client.call("fs/unwatch", json!({"watchId": "none"})).await;
    assert_eq!(unknown, json!({}));
}

#[tokio::test]
async fn watch_ids_belong_to_their_connection() {
    let server = outpost().start().await;
    let path = server.dir().join("f");
    let clients = [app_client(&server).await, app_client(&server).await];
    for client in &clients {
        let params = json!({"watchId": "same", "path": path});
        client.call("fs/watch", params).await;
    }
    fs::write(&path, "").expect("a file");
    for client in &clients {
        let changed = notification(client, "fs/changed", 0).await;
        assert_eq!(changed, json!({"watchId": "same", "changedPaths": [path]}));
    }
}

#[tokio::test]
async fn exec_client_watches_a_tree_by_uri() {
    let server = outpost().start().await;
    let client = server.connect().await;
    let result = client.call("initialize", json!({"clientName": "t"})).await;
    assert_eq!(result["capabilities"]["fsWatch"], true);
    client.notify("initialized", json!({})).await;
    let tree = server.dir().join("my tree");
    fs::create_dir_all(tree.join("a/b")).expect("a directory");
    let params = json!({"watchId": "t", "path": uri(&tree), "recursive": true});
    let result = client.call("fs/watch", params).await;
    assert_eq!(result, json!({"path": uri(&tree)}));
    let file = file(&server, "my tree/a/b/f", "text");
    let changed = notification(&client, "fs/changed", 0).await;
    let expected = json!({"watchId": "t", "changedPaths": [uri(&file)]});
    assert_eq!(changed, expected);
    let error = error_of(&client, "fs/watch", json!({"watchId": "n", "path": "/tmp"})).await;
    assert_eq!(error.0, -32602, "native paths are for the app-server");
}

#[tokio::test]
async fn watch_with_a_sandbox_that_hides_files_is_refused() {
    let (server, client) = ready().await;
    let entry = json!({"path": {"type": "path", "path": uri(server.dir())}, "access": "read"});
    let policy = json!({"type": "restricted", "entries": [entry]});
    let sandbox = json!({
        "permissions": {"type": "managed", "file_system": policy, "network": "restricted"},
    });
    let params = json!({"watchId": "s", "path": uri(server.dir()), "sandbox": sandbox});
    let error = client.call_fails("fs/watch", params).await;
    assert!(error.message.contains("cannot be sandboxed"), "{error:?}");
}
