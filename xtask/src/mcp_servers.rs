//! Installs the third-party MCP servers used by tests. All versions are pinned. Only this step
//! needs the network.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::checkout;
use crate::command::{self, find, quiet, succeeds};

/// The npm and pip lock files.
const NPM: [(&str, &str); 2] = [
    ("package.json", include_str!("../mcp-servers/package.json")),
    (
        "package-lock.json",
        include_str!("../mcp-servers/package-lock.json"),
    ),
];
const PIP: &str = include_str!("../mcp-servers/requirements.txt");

/// Contains the lock files after a complete installation.
const STAMP: &str = "installed";

/// Preferred: the unprivileged test user may not be able to read another Python.
const SYSTEM_PYTHON: &str = "/usr/bin/python3";

/// The installation directory.
pub(crate) fn dir() -> PathBuf {
    checkout::root().join("target/mcp-servers")
}

/// Installs the servers, unless this version is installed.
pub(crate) fn install() -> Result<()> {
    let dir = dir();
    let wanted = format!("{}{}{PIP}", NPM[0].1, NPM[1].1);
    if fs::read_to_string(dir.join(STAMP)).is_ok_and(|there| there == wanted) {
        println!("MCP servers for tests: installed");
        return Ok(());
    }
    println!("MCP servers for tests: missing, installing them with npm and pip");
    if dir.exists() {
        fs::remove_dir_all(&dir).context("removing the old MCP servers")?;
    }
    with_npm(&dir.join("npm"))
        .context("cannot install the Node.js MCP server for tests; this needs the network once")?;
    with_pip(&dir.join("python"))
        .context("cannot install the Python MCP server for tests; this needs the network once")?;
    fs::write(dir.join(STAMP), wanted).context("writing the stamp of the MCP servers")
}

fn with_npm(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir)?;
    for (name, text) in NPM {
        fs::write(dir.join(name), text)?;
    }
    let quietly = ["--no-audit", "--no-fund", "--ignore-scripts", "--silent"];
    command::run(quiet("npm").arg("ci").args(quietly).current_dir(dir))
}

fn with_pip(dir: &Path) -> Result<()> {
    command::run(quiet(python()?).args(["-m", "venv"]).arg(dir))?;
    let list = dir.join("requirements.txt");
    fs::write(&list, PIP)?;
    let install = ["-m", "pip", "install", "--quiet", "--no-deps", "-r"];
    let python = dir.join("bin/python3");
    command::run(quiet(&python.to_string_lossy()).args(install).arg(&list))
}

/// Finds a Python that can create virtual environments.
pub(crate) fn python() -> Result<&'static str> {
    let candidates = [SYSTEM_PYTHON, "python3"];
    let able = |python: &&&str| succeeds(quiet(python).args(["-c", "import ensurepip, venv"]));
    match candidates.iter().find(able) {
        Some(python) => Ok(python),
        None if find("python3").is_some() => {
            bail!("python3 lacks the module venv (Debian package python3-venv)")
        }
        None => bail!("python3 is missing"),
    }
}
