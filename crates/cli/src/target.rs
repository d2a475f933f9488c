//! Where things are done: in this program, or on the server that `--on` names.

use std::{path::PathBuf, process::Command};

use anyhow::Context;
use outpost_client::{Error, Local, LocalOptions, Remote, RemoteOptions, TreeChoice};
use outpost_engine::sandbox::Level;

use crate::{
    args::LAUNCHED,
    cmd::{confine, keeper},
    open_files,
};

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

/// This program as a place; processes start in this directory.
pub(crate) fn here(cwd: PathBuf, level: Level) -> anyhow::Result<Local> {
    outpost_engine::heed_children().context("cannot undo that SIGCHLD is ignored")?;
    let child_open_files = open_files::raise();
    let options = |trees| LocalOptions {
        trees,
        keeper: Some(keeper::command()),
        stages: Some(confine::command()),
        sandbox_level: level,
        child_open_files,
        cwd: Some(cwd.clone()),
        ..LocalOptions::default()
    };
    // A keeper ends the tree even if we are killed; a cgroup would stay.
    let local = Local::new(options(TreeChoice::Keeper))
        .or_else(|_| Local::new(options(TreeChoice::Auto)))?;
    Ok(local)
}
