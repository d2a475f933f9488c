//! Runs the tests again as a user without privileges, from the binaries that are built already.
//!
//! That user may neither read the checkout (root's folders are often closed) nor write to it (so
//! no snapshot or regression file can appear there). It therefore gets a camp: a temporary folder
//! of its own with the sources, the test binaries as a nextest archive, nextest itself, and an
//! environment that has nothing of root's. Nextest tells each test where things are now: the
//! working directory is the package's folder in the camp, and `NEXTEST_BIN_EXE_outpost` is the
//! path of the built server.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::checkout;
use crate::command::{self, cargo, find, quiet};
use crate::mcp_servers;

/// Debian's `nobody`, which owns nothing; the number works where the name is missing.
const USER: &str = "65534";

/// Where an ordinary user's programs are. Root's own PATH may lead through folders that are
/// closed to others.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What the second run may know of the environment of the first.
const KEPT: &[&str] = &[
    "CARGO_TERM_COLOR",
    "CI",
    "LANG",
    "PROPTEST_CASES",
    "RUST_BACKTRACE",
    "TERM",
];

pub(crate) fn run() -> Result<()> {
    let camp = tempfile::Builder::new()
        .prefix("outpost-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir()
        .context("making a folder for the other user")?;
    pitch(camp.path())?;
    command::run(&mut tests(camp.path()))
}

/// Fills the camp and gives it to its user.
fn pitch(camp: &Path) -> Result<()> {
    for folder in ["home", "tmp", "source"] {
        fs::create_dir(camp.join(folder))?;
    }
    for path in checkout::files()? {
        let copy = camp.join("source").join(&path);
        fs::create_dir_all(copy.parent().unwrap_or(camp))?;
        fs::copy(checkout::root().join(&path), copy).with_context(|| format!("copying {path}"))?;
    }
    let servers = mcp_servers::folder();
    let beside = camp.join("source/target");
    fs::create_dir_all(&beside)?;
    // With its links as they are: among them is the one to the interpreter.
    command::run(quiet("cp").arg("-a").arg(&servers).arg(&beside))?;
    let nextest = find("cargo-nextest").context("cargo-nextest is gone since setup")?;
    fs::copy(&nextest, camp.join("cargo-nextest")).context("copying cargo-nextest")?;
    command::run(
        cargo(["nextest", "archive", "--workspace", "--zstd-level", "1"])
            .arg("--archive-file")
            .arg(camp.join("tests.tar.zst")),
    )?;
    // Owning everything spares it from depending on root's umask.
    command::run(
        quiet("chown")
            .args(["-R", &format!("{USER}:{USER}")])
            .arg(camp),
    )
}

/// The test run in the camp.
fn tests(camp: &Path) -> Command {
    let source = camp.join("source");
    let mut setpriv = quiet("setpriv");
    setpriv
        .args(["--reuid", USER, "--regid", USER, "--clear-groups"])
        .args(["--inh-caps=-all", "--"])
        .arg(camp.join("cargo-nextest"))
        .args(["nextest", "run", "--no-fail-fast", "--archive-file"])
        .arg(camp.join("tests.tar.zst"))
        .arg("--workspace-remap")
        .arg(&source)
        .current_dir(&source)
        .env_clear()
        .envs(
            KEPT.iter()
                .filter_map(|name| Some((name, env::var_os(name)?))),
        )
        .env("PATH", PATH)
        .env("HOME", camp.join("home"))
        .env("TMPDIR", camp.join("tmp"))
        // Otherwise insta asks a cargo, which isn't there, where the snapshots are.
        .env("INSTA_WORKSPACE_ROOT", &source)
        .env("INSTA_UPDATE", "no");
    setpriv
}
