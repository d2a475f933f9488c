//! Runs the tests as an unprivileged user, from the binaries that are already built.
//!
//! That user may be unable to read the checkout and must not write to it. It gets a temporary
//! directory with the sources, the test binaries as a nextest archive, nextest itself, and a clean
//! environment. nextest sets the working directory of each test to the package's copy and
//! `NEXTEST_BIN_EXE_outpost` to the path of the server.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::checkout;
use crate::command::{self, cargo, find, quiet};
use crate::mcp_servers;

/// The uid of Debian's `nobody`.
const USER: &str = "65534";

/// root's PATH may contain directories that others cannot read.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Environment variables that are passed on.
const KEPT: [&str; 6] = [
    "CARGO_TERM_COLOR",
    "CI",
    "LANG",
    "PROPTEST_CASES",
    "RUST_BACKTRACE",
    "TERM",
];

pub(crate) fn run() -> Result<()> {
    let dir = tempfile::Builder::new()
        .prefix("outpost-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir()
        .context("creating a directory for the unprivileged user")?;
    prepare(dir.path())?;
    command::run(&mut tests(dir.path()))
}

/// Fills the directory and changes its owner.
fn prepare(dir: &Path) -> Result<()> {
    for subdir in ["home", "tmp", "source"] {
        fs::create_dir(dir.join(subdir))?;
    }
    for path in checkout::files()? {
        let copy = dir.join("source").join(&path);
        fs::create_dir_all(copy.parent().unwrap_or(dir))?;
        fs::copy(checkout::root().join(&path), copy).with_context(|| format!("copying {path}"))?;
    }
    let servers = mcp_servers::dir();
    let beside = dir.join("source/target");
    fs::create_dir_all(&beside)?;
    // Keep symbolic links: one points to the Python interpreter.
    command::run(quiet("cp").arg("-a").arg(&servers).arg(&beside))?;
    let nextest = find("cargo-nextest").context("cargo-nextest is missing after setup")?;
    fs::copy(&nextest, dir.join("cargo-nextest")).context("copying cargo-nextest")?;
    command::run(
        cargo("nextest archive --workspace --zstd-level 1 --archive-file")
            .arg(dir.join("tests.tar.zst")),
    )?;
    // Independent of root's umask.
    let owner = format!("{USER}:{USER}");
    command::run(quiet("chown").args(["-R", &owner]).arg(dir))
}

/// Builds the test command.
fn tests(dir: &Path) -> Command {
    let source = dir.join("source");
    let mut setpriv = quiet("setpriv");
    setpriv
        .args(["--reuid", USER, "--regid", USER, "--clear-groups"])
        .args(["--inh-caps=-all", "--"])
        .arg(dir.join("cargo-nextest"))
        .args(["nextest", "run", "--no-fail-fast", "--archive-file"])
        .arg(dir.join("tests.tar.zst"))
        .arg("--workspace-remap")
        .arg(&source)
        .current_dir(&source)
        .env_clear()
        .envs(env::vars_os().filter(|(name, _)| KEPT.iter().any(|kept| name == kept)))
        .env("PATH", PATH)
        .env("HOME", dir.join("home"))
        .env("TMPDIR", dir.join("tmp"))
        // Otherwise insta runs cargo, which is not on the PATH, to find the snapshots.
        .env("INSTA_WORKSPACE_ROOT", &source)
        .env("INSTA_UPDATE", "no");
    setpriv
}
