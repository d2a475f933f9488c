//! The server's own files in `/proc`, which have the session ids of all clients.

use std::fs;
use std::os::unix::fs::symlink;

use outpost_testkit::{Client, Server, sh};
use serde_json::{Value, json};

use super::{error_of, uri};
use crate::ready;

const OWN: &str = "path leads to the server's own files in /proc";
const LINK: &str =
    "path contains a link of /proc to an open file or directory; use the target's own path";

fn file_uri(path: &str) -> String {
    uri(path.as_ref())
}

/// Every operation on a path, except those on the link itself.
fn operations(path: &str) -> Vec<(&'static str, Value)> {
    let walk = json!({"maxDepth": 1, "maxDirectories": 10, "maxEntries": 1000,
                      "followDirectorySymlinks": true, "pruneHiddenDirectories": false});
    vec![
        ("fs/readFile", json!({"path": path})),
        ("fs/open", json!({"handleId": "h", "path": path})),
        ("fs/writeFile", json!({"path": path, "dataBase64": ""})),
        ("fs/getMetadata", json!({"path": path})),
        ("fs/canonicalize", json!({"path": path})),
        ("fs/readDirectory", json!({"path": path})),
        ("fs/walk", json!({"path": path, "options": walk})),
        (
            "fs/copy",
            json!({"sourcePath": file_uri("/etc/passwd"), "destinationPath": path}),
        ),
        ("fs/remove", json!({"path": format!("{path}/x")})),
        ("fs/createDirectory", json!({"path": format!("{path}/x")})),
        (
            "fs/createStream",
            json!({"handleId": "s", "path": format!("{path}/x")}),
        ),
    ]
}

async fn expect_rejected(client: &Client, path: &str, text: &str) {
    for (method, params) in operations(&file_uri(path)) {
        let error = error_of(client, method, params).await;
        assert_eq!(error, (-32600, text.to_owned()), "{method} {path}");
    }
}

/// Starts a process and returns its pid.
async fn child(client: &Client) -> i64 {
    client.start(sh("child", "exec sleep 1000")).await;
    let listed = client.listed("child").await.expect("it is listed");
    listed["pid"].as_i64().expect("it runs")
}

fn link(server: &Server, name: &str, target: &str) -> String {
    let path = server.dir().join(name);
    symlink(target, &path).expect("a link");
    path.display().to_string()
}

#[tokio::test]
async fn own_directory_is_rejected_by_every_operation() {
    let (server, client) = ready().await;
    let pid = server.pid();
    let thread = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let mut threads: Vec<_> = thread.map(|entry| entry.unwrap().file_name()).collect();
    threads.retain(|name| name.to_str() != Some(&pid.to_string()));
    let thread = threads[0].to_str().unwrap();
    for path in [
        "/proc/self".to_owned(),
        "/proc/thread-self".to_owned(),
        format!("/proc/{pid}"),
        format!("/proc/{pid}/task/{thread}"),
        format!("/proc/{thread}"),
        link(&server, "process", &format!("/proc/{pid}")),
        link(&server, "self", "/proc/self"),
        format!("{}/self", link(&server, "proc", "/proc/")),
        "/proc/self/../self/task".to_owned(),
    ] {
        expect_rejected(&client, &path, OWN).await;
    }
}

#[tokio::test]
async fn own_files_are_neither_read_nor_written() {
    let (server, client) = ready().await;
    let pid = server.pid();
    for name in [
        "mem",
        "environ",
        "maps",
        "oom_score_adj",
        "clear_refs",
        "task",
    ] {
        for path in [format!("/proc/self/{name}"), format!("/proc/{pid}/{name}")] {
            let path = file_uri(&path);
            for (method, params) in [
                ("fs/readFile", json!({"path": path})),
                (
                    "fs/readFile",
                    json!({"path": path, "followSymlinks": false}),
                ),
                ("fs/open", json!({"handleId": "h", "path": path})),
                ("fs/writeFile", json!({"path": path, "dataBase64": ""})),
            ] {
                let (code, message) = error_of(&client, method, params).await;
                // Where the kernel already denies the access, its error comes first.
                let expected = message == OWN
                    || message.starts_with("Permission denied")
                    || message == "path contains a symbolic link";
                assert!(code == -32600 && expected, "{method} {path}: {message}");
            }
        }
    }
}

#[tokio::test]
async fn own_files_are_not_copied() {
    let (server, client) = ready().await;
    let pid = server.pid();
    let to = uri(&server.dir().join("copy"));
    for path in [format!("/proc/{pid}/status"), format!("/proc/{pid}")] {
        let from = file_uri(&path);
        let params = json!({"sourcePath": from, "destinationPath": to, "recursive": true});
        let error = error_of(&client, "fs/copy", params).await;
        assert_eq!(error, (-32600, OWN.to_owned()), "{path}");
    }
    assert!(!server.dir().join("copy").exists());
}

#[tokio::test]
async fn links_to_open_files_and_roots_are_rejected() {
    let (server, client) = ready().await;
    let pid = server.pid();
    let child = child(&client).await;
    let root = link(&server, "root", &format!("/proc/{child}/root"));
    for path in [
        "/proc/self/cwd".to_owned(),
        "/proc/self/fd/0".to_owned(),
        format!("/proc/{pid}/cwd"),
        format!("{root}/proc/self"),
        format!("/proc/{child}/cwd"),
        root,
    ] {
        let stream = json!({"handleId": "s", "path": file_uri(&path)});
        let mut operations = operations(&file_uri(&path));
        operations.retain(|(method, _)| *method != "fs/createStream");
        operations.push(("fs/createStream", stream));
        for (method, params) in operations {
            let (code, message) = error_of(&client, method, params).await;
            assert!(
                message == LINK || message == OWN,
                "{method} {path}: {message}"
            );
            assert_eq!(code, -32600);
        }
    }
    client.terminate("child").await;
}

#[tokio::test]
async fn files_of_others_in_proc_can_be_read() {
    let (_server, client) = ready().await;
    let child = child(&client).await;
    for path in ["/proc/meminfo".to_owned(), format!("/proc/{child}/status")] {
        client
            .call("fs/readFile", json!({"path": file_uri(&path)}))
            .await;
    }
    client
        .call("fs/readDirectory", json!({"path": file_uri("/proc")}))
        .await;
    client.terminate("child").await;
}

#[tokio::test]
async fn processes_of_the_same_user_cannot_look_into_the_server() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let (server, client) = ready().await;
    let pid = server.pid();
    for file in ["environ", "mem", "fd/0", "maps"] {
        let id = file.replace('/', "-");
        let script = format!("head -c 1 /proc/{pid}/{file}");
        let log = client.run(sh(&id, &script)).await;
        assert_eq!(log.code(), 1, "{file}: {}", log.text());
    }
}
