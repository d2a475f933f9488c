//! The server that `--on` names.

use std::process::Command;

use anyhow::Context;
use outpost_client::{Remote, RemoteOptions};

use crate::args::LAUNCHED;

/// Connects to a server by its URL, or launches one.
pub(crate) async fn connect(on: &str, options: RemoteOptions) -> anyhow::Result<Remote> {
    let connected = match on.strip_prefix(LAUNCHED) {
        Some(line) => {
            let mut shell = Command::new("/bin/sh");
            // The shell becomes the server, so that what ends is what was started.
            shell.args(["-c", &format!("exec {line}")]);
            Remote::launch(shell, options).await
        }
        None => Remote::connect(on, options).await,
    };
    connected.with_context(|| format!("--on {on}"))
}
