//! The working directory of a local command.

use std::{
    io,
    os::unix::fs::MetadataExt as _,
    path::{Component, PathBuf},
};

/// The working directory of this program.
fn current_directory() -> anyhow::Result<PathBuf> {
    std::env::current_dir().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => anyhow::anyhow!(
            "the current directory has been deleted; change to another one, or use --cwd"
        ),
        _ => anyhow::Error::new(error).context("cannot determine the current directory"),
    })
}

/// The working directory of a command, as an absolute path. Contains the symbolic links through which
/// the shell has entered it, because the sandbox must not follow those that a sandboxed process has made.
pub(crate) fn directory(cwd: Option<&str>) -> anyhow::Result<PathBuf> {
    let cwd = PathBuf::from(cwd.unwrap_or_default());
    if cwd.is_absolute() {
        return Ok(cwd);
    }
    let current = match logical_directory() {
        Some(logical) => logical,
        None => current_directory()?,
    };
    Ok(current.join(cwd).components().collect())
}

/// The working directory as in `$PWD`, if it still names this directory.
fn logical_directory() -> Option<PathBuf> {
    let logical = PathBuf::from(std::env::var_os("PWD")?);
    let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    if !logical.is_absolute() || !logical.components().all(is_plain) {
        return None;
    }
    let (named, current) = (std::fs::metadata(&logical), std::fs::metadata("."));
    let (named, current) = (named.ok()?, current.ok()?);
    let same = (named.dev(), named.ino()) == (current.dev(), current.ino());
    same.then_some(logical)
}
