//! Installs what the tests need on a machine with Rust only. Installs only what is missing.

use anyhow::{Context, Result, bail, ensure};

use crate::command::{self, cargo, find, quiet, succeeds};
use crate::mcp_servers;

/// Pinned for reproducible test runs.
const NEXTEST: &str = "0.9.143";

/// A program, its Debian package and its use.
type Tool = (&'static str, &'static str, &'static str);

const TOOLS: [Tool; 11] = [
    ("git", "git", "lists the files for tidy"),
    ("ps", "procps", "lists processes in tests"),
    ("bwrap", "bubblewrap", "confines processes"),
    ("zsh", "zsh", "is a login shell in tests"),
    (
        "ssh",
        "openssh-client",
        "reaches servers through ssh in tests",
    ),
    // Not on the PATH of every user.
    (
        "/usr/sbin/sshd",
        "openssh-server",
        "is the other end of that",
    ),
    ("chromium", "chromium", "opens web pages in tests"),
    ("node", "nodejs", "runs an MCP server for tests"),
    ("npm", "npm", "installs that MCP server"),
    ("python3", "python3", "runs another MCP server for tests"),
    (VENV, "python3-venv", "installs that MCP server"),
];

/// Needed by root only.
const ROOT_TOOL: Tool = (
    "setpriv",
    "util-linux",
    "runs the tests as an unprivileged user",
);

/// A Python module with its own Debian package.
const VENV: &str = "python3 -m venv";

/// Prepares the machine for `cargo xtask test`, or says what to install by hand.
pub(crate) fn run() -> Result<()> {
    component("rustfmt", "fmt")?;
    component("clippy", "clippy")?;
    nextest()?;
    packages(rustix::process::geteuid().is_root())?;
    mcp_servers::install()
}

fn component(name: &str, subcommand: &str) -> Result<()> {
    if succeeds(&mut cargo(&format!("{subcommand} --version"))) {
        println!("{name}: installed");
        return Ok(());
    }
    if find("rustup").is_none() {
        bail!("{name} and rustup are missing: install {name} the way Rust was installed");
    }
    println!("{name}: missing, adding it with rustup");
    command::run(quiet("rustup").args(["component", "add", name]))
        .with_context(|| format!("{name} is missing: try `rustup component add {name}` by hand"))
}

fn nextest() -> Result<()> {
    if succeeds(&mut cargo("nextest --version")) {
        println!("cargo-nextest: installed");
        return Ok(());
    }
    println!("cargo-nextest: missing, building {NEXTEST} from source; this takes some minutes");
    let install = format!("install --locked cargo-nextest --version {NEXTEST}");
    command::run(&mut cargo(&install))
        .with_context(|| format!("cannot install cargo-nextest: install version {NEXTEST} by hand"))
}

fn packages(root: bool) -> Result<()> {
    let (installed, missing) = sort(root, is_installed);
    for (program, ..) in installed {
        println!("{program}: installed");
    }
    if missing.is_empty() {
        return Ok(());
    }
    for (program, _, why) in &missing {
        println!("{program}: missing; it {why}");
    }
    let packages: Vec<&str> = missing.iter().map(|(_, package, _)| *package).collect();
    install(&packages, root).with_context(|| {
        let packages = packages.join(" ");
        format!("install these packages by hand: {packages} (names as on Debian)")
    })?;
    for (program, package, _) in missing {
        ensure!(
            is_installed(program),
            "{program} is not on the PATH although its package {package} is installed"
        );
    }
    Ok(())
}

fn is_installed(program: &str) -> bool {
    match program {
        VENV => mcp_servers::python().is_ok(),
        program => find(program).is_some(),
    }
}

/// Splits the tools this user needs into installed and missing ones.
fn sort(root: bool, is_installed: impl Fn(&str) -> bool) -> (Vec<Tool>, Vec<Tool>) {
    let root_tool = root.then_some(ROOT_TOOL);
    TOOLS
        .into_iter()
        .chain(root_tool)
        .partition(|(program, ..)| is_installed(program))
}

fn install(packages: &[&str], root: bool) -> Result<()> {
    if find("apt-get").is_none() {
        bail!("apt-get is missing");
    }
    if !root && find("sudo").is_none() {
        bail!("installing packages needs root or sudo");
    }
    println!("installing with apt-get: {}", packages.join(" "));
    let apt_get = |args: &[&str]| {
        // sudo drops inherited variables, so `env` comes after it.
        let mut command = if root {
            quiet("env")
        } else {
            let mut sudo = quiet("sudo");
            sudo.arg("env");
            sudo
        };
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]);
        command::run(command.args(args))
    };
    // A new machine has no package lists.
    apt_get(&["update"])?;
    apt_get(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tools: &[Tool]) -> Vec<&'static str> {
        tools.iter().map(|(program, ..)| *program).collect()
    }

    #[test]
    fn only_missing_tools_are_installed() {
        let (here, missing) = sort(true, |program| program == "git");
        assert_eq!(names(&here), ["git"]);
        assert_eq!(missing.len(), TOOLS.len());
        assert_eq!(names(&missing)[..2], ["ps", "bwrap"]);
    }

    #[test]
    fn root_tools_are_optional_for_other_users() {
        let (here, missing) = sort(false, |_| false);
        assert!(here.is_empty());
        assert_eq!(missing, TOOLS);
    }
}
