//! Tests the `fs/*` methods.

mod content;
mod entries;
mod errors;
mod handles;
mod large;
mod listings;
mod own_process;
mod replace;
mod stream;
mod watching;

use std::path::{Path, PathBuf};

use outpost_testkit::{Client, Server, base64 as encoded, file_uri as uri, unbase64 as decoded};
use serde_json::{Value, json};

/// Creates a file in the server's directory.
fn file(server: &Server, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = server.dir().join(name);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    std::fs::write(&path, content).expect("a file");
    path
}

fn link(server: &Server, name: &str, target: impl AsRef<Path>) -> PathBuf {
    let path = server.dir().join(name);
    std::os::unix::fs::symlink(target, &path).expect("a link");
    path
}

fn fifo(server: &Server, name: &str) -> PathBuf {
    let path = server.dir().join(name);
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo").success());
    path
}

/// Params with a path and others.
fn params_for(path: &Path, others: &Value) -> Value {
    let mut params = json!({"path": uri(path)});
    let members = params.as_object_mut().expect("an object");
    members.extend(others.as_object().expect("an object").clone());
    params
}

/// Sends a request that must fail and returns its error code and message.
async fn error_of(client: &Client, method: &str, params: Value) -> (i64, String) {
    let error = client.call_fails(method, params).await;
    (error.code, error.message)
}

const MISSING: &str = "No such file or directory (os error 2)";

fn not_found() -> (i64, String) {
    (-32004, MISSING.to_owned())
}

fn invalid(message: &str) -> (i64, String) {
    (-32600, message.to_owned())
}

fn failed(message: &str) -> (i64, String) {
    (-32603, message.to_owned())
}
