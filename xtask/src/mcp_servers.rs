//! Installs the MCP servers that tests run against: real ones, which others wrote. What is
//! installed is fixed to the last dependency, so that a new release never changes what a commit's
//! tests do. The network is needed here alone, the tests go without.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::checkout;
use crate::command::{self, find, quiet, succeeds};

/// What is installed, in the words of npm and pip.
const NPM: [(&str, &str); 2] = [
    ("package.json", include_str!("../mcp-servers/package.json")),
    (
        "package-lock.json",
        include_str!("../mcp-servers/package-lock.json"),
    ),
];
const PIP: &str = include_str!("../mcp-servers/requirements.txt");

/// Has the two above once everything is there.
const STAMP: &str = "installed";

/// The system's own Python before any other: the tests run as another user too, who may not see
/// what somebody has at home.
const SYSTEM_PYTHON: &str = "/usr/bin/python3";

/// Where they are.
pub(crate) fn folder() -> PathBuf {
    checkout::root().join("target/mcp-servers")
}

/// Installs what isn't there, or isn't what this commit wants.
pub(crate) fn install() -> Result<()> {
    let folder = folder();
    let wanted = format!("{}{}{PIP}", NPM[0].1, NPM[1].1);
    if fs::read_to_string(folder.join(STAMP)).is_ok_and(|there| there == wanted) {
        println!("MCP servers for tests: here");
        return Ok(());
    }
    println!("MCP servers for tests: missing, installing them with npm and pip");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("removing the old MCP servers")?;
    }
    with_npm(&folder.join("npm")).context(
        "the MCP server for tests that runs on Node.js can't be installed; it is needed, and so is \
         the network to get it once",
    )?;
    with_pip(&folder.join("python")).context(
        "the MCP server for tests that runs on Python can't be installed; it is needed, and so is \
         the network to get it once",
    )?;
    fs::write(folder.join(STAMP), wanted).context("noting that the MCP servers are installed")
}

fn with_npm(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (name, text) in NPM {
        fs::write(folder.join(name), text)?;
    }
    let quietly = ["--no-audit", "--no-fund", "--ignore-scripts", "--silent"];
    command::run(quiet("npm").arg("ci").args(quietly).current_dir(folder))
}

fn with_pip(folder: &Path) -> Result<()> {
    command::run(quiet(python()?).args(["-m", "venv"]).arg(folder))?;
    let list = folder.join("requirements.txt");
    fs::write(&list, PIP)?;
    let install = ["-m", "pip", "install", "--quiet", "--no-deps", "-r"];
    let python = folder.join("bin/python3");
    command::run(quiet(&python.to_string_lossy()).args(install).arg(&list))
}

/// A Python that can make environments.
fn python() -> Result<&'static str> {
    let candidates = [SYSTEM_PYTHON, "python3"];
    let able = |python: &&&str| succeeds(quiet(python).args(["-c", "import ensurepip, venv"]));
    match candidates.iter().find(able) {
        Some(python) => Ok(python),
        None if find("python3").is_some() => {
            bail!("python3 is here without its module venv (Debian's package python3-venv)")
        }
        None => bail!("python3 is missing"),
    }
}

/// Whether Python can make environments, which on Debian is a package of its own.
pub(crate) fn python_is_able() -> bool {
    python().is_ok()
}
