//! Watches take no more from the kernel than the share of their client.

use std::{fs, path::Path};

use outpost_server::{Peer as PeerKind, Settings};
use serde_json::{Value, json};

use crate::peer::{Peer, server};

async fn client(server: &outpost_server::Server, user: u32) -> Peer {
    let mut client = Peer::connect_as(server, PeerKind::User(user));
    client.initialize(json!({"clientName": "client"})).await;
    client
}

/// Watches a directory with everything below it. Returns the response.
async fn watch(client: &mut Peer, id: &str, path: &Path) -> Value {
    let path = format!("file://{}", path.display());
    let watch = json!({"watchId": id, "path": path, "recursive": true});
    client.call("fs/watch", watch).await
}

#[tokio::test]
async fn client_leaves_watched_directories_for_others() {
    let server = server(Settings {
        watched_directories: Some(90),
        ..Settings::default()
    });
    let directory = tempfile::tempdir().expect("a directory");
    for number in 0..100 {
        fs::create_dir_all(directory.path().join(format!("large/{number}"))).expect("a directory");
    }
    let large = directory.path().join("large");
    let small = directory.path().join("large/0");
    let mut first = client(&server, 1).await;
    let refused = watch(&mut first, "large", &large).await;
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(
        message.starts_with("the client's share of the watched files and directories"),
        "{message}"
    );
    assert_eq!(refused["error"]["code"], -32603);
    // Nothing is held for the refused watch.
    let opened = watch(&mut first, "small", &small).await;
    assert!(opened["error"].is_null(), "{opened}");
    for number in 0..70 {
        let path = large.join(number.to_string());
        let opened = watch(&mut first, &format!("w{number}"), &path).await;
        assert!(opened["error"].is_null(), "{opened}");
    }
    let mut second = client(&server, 2).await;
    let opened = watch(&mut second, "small", &small).await;
    assert!(opened["error"].is_null(), "{opened}");
}

#[tokio::test]
async fn client_leaves_inotify_instances_for_others() {
    let server = server(Settings {
        watch_instances: Some(18),
        ..Settings::default()
    });
    let directory = tempfile::tempdir().expect("a directory");
    let missing = format!("file://{}", directory.path().join("missing").display());
    let mut clients = Vec::new();
    let mut watching = 0;
    for _ in 0..20 {
        let mut client = client(&server, 1).await;
        let watch = json!({"watchId": 1, "missing": [missing]});
        let answer = client.call("fs/watchMissing", watch).await;
        watching += usize::from(answer["result"]["watching"] == true);
        clients.push(client);
    }
    assert_eq!(watching, 16, "eight ninths");
    let refused = watch(&mut clients[19], "w", directory.path()).await;
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(
        message.starts_with("too many connections watch files"),
        "{message}"
    );
    let mut other = client(&server, 2).await;
    let opened = watch(&mut other, "w", directory.path()).await;
    assert!(opened["error"].is_null(), "{opened}");
}
