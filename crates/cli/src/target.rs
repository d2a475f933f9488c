//! The server that `--on` names.

use std::process::Command;

use anyhow::Context;
use outpost_client::{Error, Remote, RemoteOptions};

use crate::args::LAUNCHED;

/// Connects to the server that `--on` names.
pub(crate) async fn connect(on: &str, options: RemoteOptions) -> anyhow::Result<Remote> {
    let connected = reach(on, options).await;
    connected.with_context(|| format!("--on {on}"))
}

/// Connects to a server by its URL, or launches one.
pub(crate) async fn reach(on: &str, options: RemoteOptions) -> Result<Remote, Error> {
    match on.strip_prefix(LAUNCHED) {
        Some(line) => {
            let mut shell = Command::new("/bin/sh");
            // The shell becomes the server, so that what ends is what was started.
            shell.args(["-c", &format!("exec {line}")]);
            Remote::launch(shell, options).await
        }
        None => Remote::connect(on, options).await,
    }
}
