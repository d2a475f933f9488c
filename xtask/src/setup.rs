//! Installs what tests need on a machine that has only Rust. Checks first, installs only what is
//! missing, and says in one line each what it found or did.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::command::{self, cargo, find, quiet, succeeds};
use crate::mcp_servers;

/// Fixed, so that a new release never changes what a commit's tests do.
const NEXTEST: &str = "0.9.143";

/// A program that comes with a Debian package.
struct Tool {
    program: &'static str,
    package: &'static str,
    why: &'static str,
    /// Of use to root alone, so nobody else has to have it.
    root_only: bool,
}

const TOOLS: &[Tool] = &[
    Tool {
        program: "git",
        package: "git",
        why: "tells tidy which files are ours",
        root_only: false,
    },
    Tool {
        program: "ps",
        package: "procps",
        why: "shows tests what is still running after a server's end",
        root_only: false,
    },
    Tool {
        program: "bwrap",
        package: "bubblewrap",
        why: "confines processes, which tests try to get out of",
        root_only: false,
    },
    Tool {
        program: "setpriv",
        package: "util-linux",
        why: "runs the tests a second time as a user without privileges",
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
        why: "lets Python install that MCP server",
        root_only: false,
    },
];

/// A module of Python, which is no program and a package of its own on Debian.
const VENV: &str = "python3 -m venv";

/// Leaves the machine able to run `cargo xtask test`, or says what a person must do for that.
pub(crate) fn run() -> Result<()> {
    component("rustfmt", "fmt")?;
    component("clippy", "clippy")?;
    nextest()?;
    packages(rustix::process::geteuid().is_root())?;
    mcp_servers::install()
}

fn component(name: &str, subcommand: &str) -> Result<()> {
    if succeeds(&mut cargo([subcommand, "--version"])) {
        println!("{name}: here");
        return Ok(());
    }
    if find("rustup").is_none() {
        bail!(
            "{name} is missing and so is rustup, which would add it: install {name} the way Rust \
             was installed here"
        );
    }
    println!("{name}: missing, adding it with rustup");
    command::run(quiet("rustup").args(["component", "add", name]))
        .with_context(|| format!("{name} is missing: try `rustup component add {name}` by hand"))
}

fn nextest() -> Result<()> {
    if succeeds(&mut cargo(["nextest", "--version"])) {
        println!("cargo-nextest: here");
        return Ok(());
    }
    println!("cargo-nextest: missing, building {NEXTEST} from source; this takes some minutes");
    let install = ["install", "--locked", "cargo-nextest", "--version", NEXTEST];
    command::run(&mut cargo(install)).with_context(|| {
        format!(
            "cargo-nextest is missing, it runs the tests: install version {NEXTEST} by hand, \
             a prebuilt one will do"
        )
    })
}

fn packages(root: bool) -> Result<()> {
    let (here, missing) = sort(root, is_here);
    for tool in here {
        println!("{}: here", tool.program);
    }
    if missing.is_empty() {
        return Ok(());
    }
    for tool in &missing {
        println!("{}: missing, it {}", tool.program, tool.why);
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
            is_here(tool.program),
            "{} isn't on the PATH although its package {} is installed",
            tool.program,
            tool.package
        );
    }
    Ok(())
}

fn is_here(program: &str) -> bool {
    match program {
        VENV => mcp_servers::python_is_able(),
        program => find(program).is_some(),
    }
}

/// The tools this user needs, as those that are here and those that are missing.
fn sort(root: bool, is_here: impl Fn(&str) -> bool) -> (Vec<&'static Tool>, Vec<&'static Tool>) {
    TOOLS
        .iter()
        .filter(|tool| root || !tool.root_only)
        .partition(|tool| is_here(tool.program))
}

fn install(packages: &[&str], root: bool) -> Result<()> {
    if find("apt-get").is_none() {
        bail!("there is no apt-get here");
    }
    if !root && find("sudo").is_none() {
        bail!("only root may install packages, and there is no sudo");
    }
    println!("installing with apt-get: {}", packages.join(" "));
    // A new machine has no package lists at all, so an install without an update would fail.
    command::run(apt_get(root).arg("update"))?;
    command::run(
        apt_get(root)
            .args(["install", "--yes", "--no-install-recommends"])
            .args(packages),
    )
}

fn apt_get(root: bool) -> Command {
    // The variable is set behind sudo, which drops what it inherits.
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
    fn only_what_is_missing_is_installed() {
        let (here, missing) = sort(true, |program| program == "git");
        assert_eq!(names(&here), ["git"]);
        assert_eq!(missing.len(), TOOLS.len() - 1);
        assert_eq!(names(&missing)[..2], ["ps", "bwrap"]);
    }

    #[test]
    fn what_only_root_can_use_is_asked_of_root_alone() {
        let (here, missing) = sort(false, |_| false);
        assert!(here.is_empty());
        assert!(!names(&missing).contains(&"setpriv"));
        assert_eq!(missing.len(), TOOLS.len() - 1);
    }
}
