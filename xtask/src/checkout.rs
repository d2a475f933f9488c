//! The checkout this program was built from: where it is and which files are ours in it.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::command;

/// The top folder of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("/"))
}

/// The paths, relative to the root, of all files that are tracked or could be with `git add`.
///
/// Files that aren't tracked yet count, so that a new file is checked before its commit and not
/// after it.
pub(crate) fn files() -> Result<Vec<String>> {
    let mut git = command::quiet("git");
    // CI often runs as another user than the one who owns the checkout, which git would refuse.
    // Listing names runs nothing that the checkout brings along.
    git.args(["-c", "safe.directory=*", "ls-files", "-z"]);
    git.args(["--cached", "--others", "--exclude-standard"]);
    let output = git.current_dir(root()).output().context("starting git")?;
    ensure!(
        output.status.success(),
        "git can't list the files of {}: {}",
        root().display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let listing = String::from_utf8(output.stdout).context("a file name isn't UTF-8")?;
    let mut files: Vec<String> = listing
        .split_terminator('\0')
        // A file that was deleted and not committed yet is still listed.
        .filter(|path| root().join(path).is_file())
        .map(str::to_owned)
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}
