//! `fs/*`, row by row.

mod content;
mod entries;
mod handles;
mod large;
mod listings;
mod refusals;
mod stream;

use std::path::{Path, PathBuf};

use outpost_testkit::{Client, Server, base64 as encoded, file_uri as uri, unbase64 as decoded};
use serde_json::{Value, json};

/// Makes a file in the folder of a server.
fn file(server: &Server, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = server.folder().join(name);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    std::fs::write(&path, content).expect("a file");
    path
}

fn link(server: &Server, name: &str, target: impl AsRef<Path>) -> PathBuf {
    let path = server.folder().join(name);
    std::os::unix::fs::symlink(target, &path).expect("a link");
    path
}

fn fifo(server: &Server, name: &str) -> PathBuf {
    let path = server.folder().join(name);
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo").success());
    path
}

/// A request about a path, with other params.
fn about(path: &Path, others: &Value) -> Value {
    let mut params = json!({"path": uri(path)});
    let members = params.as_object_mut().expect("an object");
    members.extend(others.as_object().expect("an object").clone());
    params
}

/// A request that must fail: with which code and words.
async fn refused(client: &Client, method: &str, params: Value) -> (i64, String) {
    let error = client.fails(method, params).await;
    (error.code, error.message)
}

const MISSING: &str = "No such file or directory (os error 2)";

fn missing() -> (i64, String) {
    (-32004, MISSING.to_owned())
}

fn invalid(words: &str) -> (i64, String) {
    (-32600, words.to_owned())
}

fn failed(words: &str) -> (i64, String) {
    (-32603, words.to_owned())
}
