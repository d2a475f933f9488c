//! The repository: its root and its files.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command;

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("/"))
}

/// Creates a git command in the checkout.
pub(crate) fn git() -> Command {
    let mut git = command::quiet("git");
    // CI may run as a user who does not own the checkout, which git rejects by default.
    git.args(["-c", "safe.directory=*"]).current_dir(root());
    git
}

/// Lists tracked and untracked files that are not ignored, relative to the root.
pub(crate) fn files() -> Result<Vec<String>> {
    let list = [
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ];
    let output = git().args(list).output().context("starting git")?;
    ensure!(
        output.status.success(),
        "git cannot list the files of {}: {}",
        root().display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let listing = String::from_utf8(output.stdout).context("a file name isn't UTF-8")?;
    // git lists deleted files until the deletion is committed.
    let existing = |path: &&str| root().join(path).is_file();
    let files: BTreeSet<&str> = listing.split_terminator('\0').filter(existing).collect();
    Ok(files.into_iter().map(str::to_owned).collect())
}
