//! The repository: its root and its files.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::command;

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("/"))
}

/// Lists tracked and untracked files that are not ignored, relative to the root.
pub(crate) fn files() -> Result<Vec<String>> {
    let mut git = command::quiet("git");
    // CI may run as a user who does not own the checkout, which git rejects by default.
    git.args(["-c", "safe.directory=*", "ls-files", "-z"]);
    git.args(["--cached", "--others", "--exclude-standard"]);
    let output = git.current_dir(root()).output().context("starting git")?;
    ensure!(
        output.status.success(),
        "git cannot list the files of {}: {}",
        root().display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let listing = String::from_utf8(output.stdout).context("a file name isn't UTF-8")?;
    let mut files: Vec<String> = listing
        .split_terminator('\0')
        // git lists deleted files until the deletion is committed.
        .filter(|path| root().join(path).is_file())
        .map(str::to_owned)
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}
