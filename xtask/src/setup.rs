//! Installs what the tests need on a machine with Rust only. Installs only what is missing.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::command::{self, cargo, find, quiet, succeeds};
use crate::mcp_servers;

/// Pinned for reproducible test runs.
const NEXTEST: &str = "0.9.143";

/// A program with its Debian package.
struct Tool {
    program: &'static str,
    package: &'static str,
    why: &'static str,
    /// Needed by root only.
    root_only: bool,
}

const TOOLS: &[Tool] = &[
    Tool {
        program: "git",
        package: "git",
        why: "lists the files for tidy",
        root_only: false,
    },
    Tool {
        program: "ps",
        package: "procps",
        why: "lists processes in tests",
        root_only: false,
    },
    Tool {
        program: "bwrap",
        package: "bubblewrap",
        why: "confines processes",
        root_only: false,
    },
    Tool {
        program: "setpriv",
        package: "util-linux",
        why: "runs the tests as an unprivileged user",
        root_only: true,
    },
    Tool {
        program: "node",
        package: "nodejs",
        why: "runs an MCP server for tests",
        root_only: false,
    },
    Tool {
        program: "npm",
        package: "npm",
        why: "installs that MCP server",
        root_only: false,
    },
    Tool {
        program: "python3",
        package: "python3",
        why: "runs another MCP server for tests",
        root_only: false,
    },
    Tool {
        program: VENV,
        package: "python3-venv",
        why: "installs that MCP server",
        root_only: false,
    },
];

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
    if succeeds(&mut cargo([subcommand, "--version"])) {
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
    if succeeds(&mut cargo(["nextest", "--version"])) {
        println!("cargo-nextest: installed");
        return Ok(());
    }
    println!("cargo-nextest: missing, building {NEXTEST} from source; this takes some minutes");
    let install = ["install", "--locked", "cargo-nextest", "--version", NEXTEST];
    command::run(&mut cargo(install))
        .with_context(|| format!("cannot install cargo-nextest: install version {NEXTEST} by hand"))
}

fn packages(root: bool) -> Result<()> {
    let (installed, missing) = sort(root, is_installed);
    for tool in installed {
        println!("{}: installed", tool.program);
    }
    if missing.is_empty() {
        return Ok(());
    }
    for tool in &missing {
        println!("{}: missing; it {}", tool.program, tool.why);
    }
    let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    install(&packages, root).with_context(|| {
        format!(
            "install these packages by hand: {} (names as on Debian)",
            packages.join(" ")
        )
    })?;
    for tool in missing {
        ensure!(
            is_installed(tool.program),
            "{} is not on the PATH although its package {} is installed",
            tool.program,
            tool.package
        );
    }
    Ok(())
}

fn is_installed(program: &str) -> bool {
    match program {
        VENV => mcp_servers::has_python_venv(),
        program => find(program).is_some(),
    }
}

/// Splits the tools this user needs into installed and missing ones.
fn sort(
    root: bool,
    is_installed: impl Fn(&str) -> bool,
) -> (Vec<&'static Tool>, Vec<&'static Tool>) {
    TOOLS
        .iter()
        .filter(|tool| root || !tool.root_only)
        .partition(|tool| is_installed(tool.program))
}

fn install(packages: &[&str], root: bool) -> Result<()> {
    if find("apt-get").is_none() {
        bail!("apt-get is missing");
    }
    if !root && find("sudo").is_none() {
        bail!("installing packages needs root or sudo");
    }
    println!("installing with apt-get: {}", packages.join(" "));
    // A new machine has no package lists.
    command::run(apt_get(root).arg("update"))?;
    command::run(
        apt_get(root)
            .args(["install", "--yes", "--no-install-recommends"])
            .args(packages),
    )
}

fn apt_get(root: bool) -> Command {
    // sudo drops inherited variables, so `env` comes after it.
    let (program, before): (_, &[&str]) = if root {
        ("env", &[])
    } else {
        ("sudo", &["env"])
    };
    let mut command = quiet(program);
    command
        .args(before)
        .args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tools: &[&Tool]) -> Vec<&'static str> {
        tools.iter().map(|tool| tool.program).collect()
    }

    #[test]
    fn only_missing_tools_are_installed() {
        let (here, missing) = sort(true, |program| program == "git");
        assert_eq!(names(&here), ["git"]);
        assert_eq!(missing.len(), TOOLS.len() - 1);
        assert_eq!(names(&missing)[..2], ["ps", "bwrap"]);
    }

    #[test]
    fn root_only_tools_are_not_required_of_others() {
        let (here, missing) = sort(false, |_| false);
        assert!(here.is_empty());
        assert!(!names(&missing).contains(&"setpriv"));
        assert_eq!(missing.len(), TOOLS.len() - 1);
    }
}
