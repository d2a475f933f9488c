//! Tests who may connect, and what they may do.

mod audit;
mod audit_failures;
mod browser;
pub(crate) mod certificates;
mod client_certificates;
mod doctor;
mod ended_tokens;
mod floor;
mod floor_files;
mod limits;
mod listing;
mod local_users;
mod network_activity;
mod network_policies;
mod principals;
mod refusals;
mod roots;
mod secrets;
mod separation;
mod signed_tokens;
mod support;
mod tls;
mod tls_server;
mod tokens;
mod tokens_file;

use std::{
    fs::OpenOptions,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use crate::outpost;

/// Writes a file that only this user can read.
pub(crate) fn secret_file(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&path).expect("a secret file");
    file.write_all(text.as_bytes())
        .expect("a secret is written");
    path
}

/// Creates a token with `outpost token new`.
pub(crate) async fn new_token(file: &str, name: &str, more: &[&str]) -> String {
    let args = ["token", "new", "--name", name, "--tokens-file", file];
    let output = outpost().run(&[&args, more].concat()).await;
    assert_eq!(output.code, Some(0), "{output:?}");
    output.stdout.trim().to_owned()
}
