//! Where things are done: in this program, or on the server that `--on` names.

use std::{path::PathBuf, process::Command};

use anyhow::Context;
use outpost_client::{
    Error, Local, LocalOptions, Remote, RemoteOptions, TreeChoice, public_address,
};
use outpost_engine::sandbox::Level;

use crate::{
    args::LAUNCHED,
    cmd::{confine, keeper},
    launch_script::launch_script,
    open_files,
};

/// Connects to the server that `--on` names.
pub(crate) async fn connect(on: &str, options: RemoteOptions) -> anyhow::Result<Remote> {
    let connected = reach(on, options).await;
    connected.with_context(|| format!("--on {}", described(on)))
}

/// Connects to a server by its URL, or launches one.
pub(crate) async fn reach(on: &str, options: RemoteOptions) -> Result<Remote, Error> {
    match on.strip_prefix(LAUNCHED) {
        Some(line) => {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &launch_script(line)]);
            Remote::launch(shell, options).await
        }
        None => Remote::connect(on, options).await,
    }
}

/// Where it is, for people, logs and models: without what may be a secret. A command
/// that launches a server may have anything in it, and so may what is around an
/// address.
pub(crate) fn described(on: &str) -> String {
    match on.starts_with(LAUNCHED) {
        true => "a server that was launched".to_owned(),
        false => public_address(on),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_is_told_where_it_is_and_no_secret() {
        for (on, told) in [
            ("ws://build:7777", "ws://build:7777"),
            (
                "wss://me:secret@build/path?token=secret",
                "wss://build/path",
            ),
            ("unix:///run/outpost.sock", "unix:///run/outpost.sock"),
            ("stdio:ssh -i secret build", "a server that was launched"),
        ] {
            assert_eq!(described(on), told);
        }
    }
}
