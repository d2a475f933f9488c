//! Describes the machine as far as it matters for the results, without naming it.

use std::fmt;
use std::fs;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};

use crate::checkout;
use crate::command::quiet;

pub(super) struct Machine {
    /// Names and values.
    facts: Vec<(&'static str, String)>,
}

impl Machine {
    /// Collects the facts. Must run before the measurement, which changes the load.
    pub(super) fn look() -> Result<Self> {
        let cores = thread::available_parallelism()?;
        let cpu = read("/proc/cpuinfo")
            .ok()
            .and_then(|text| field(&text, "model name"));
        let cpu = cpu.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
        let memory = field(&read("/proc/meminfo")?, "MemTotal").context("no MemTotal")?;
        let load = read("/proc/loadavg")?;
        let load = load.split_whitespace().next().unwrap_or_default();
        let facts = vec![
            ("cpu", format!("{cpu}, {cores} cores")),
            ("memory", gibibytes(&memory)?),
            ("kernel", read("/proc/sys/kernel/osrelease")?),
            ("system", system()),
            ("outpost", version()?),
            ("rust", said(quiet("rustc").arg("--version"))?),
            ("date", said(quiet("date").args(["-u", "+%Y-%m-%d"]))?),
            ("load before", load.to_owned()),
        ];
        Ok(Self { facts })
    }

    /// Adds a fact that is known after the measurement.
    pub(super) fn add(&mut self, name: &'static str, fact: String) {
        self.facts.push((name, fact));
    }

    pub(super) fn facts(&self) -> &[(&'static str, String)] {
        &self.facts
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, fact) in &self.facts {
            writeln!(f, "{name:<11}  {fact}")?;
        }
        Ok(())
    }
}

fn read(path: &str) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    Ok(text.trim().to_owned())
}

/// Returns the value of the first `name : value` line.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn gibibytes(kilobytes: &str) -> Result<String> {
    let number = kilobytes.trim_end_matches(" kB").parse::<f64>();
    let number = number.with_context(|| kilobytes.to_owned())?;
    Ok(format!("{:.0} GiB", number / 1024.0 / 1024.0))
}

fn system() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or("unknown".to_owned(), |name| {
        name.trim_matches('"').to_owned()
    })
}

/// The version and commit of this build.
fn version() -> Result<String> {
    let git = |args: &[&str]| {
        let mut git = quiet("git");
        // The checkout may belong to another user.
        git.args(["-c", "safe.directory=*"])
            .args(args)
            .current_dir(checkout::root());
        said(&mut git)
    };
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let changed = !git(&["status", "--porcelain"])?.is_empty();
    let changed = if changed { " and changes" } else { "" };
    Ok(format!("{} ({commit}{changed})", env!("CARGO_PKG_VERSION")))
}

fn said(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_name() {
        let text = "processor\t: 0\nmodel name\t: A: B\nmodel name\t: C\n";
        assert_eq!(field(text, "model name").unwrap(), "A: B");
        assert_eq!(field(text, "model"), None);
        assert_eq!(gibibytes("24683520 kB").unwrap(), "24 GiB");
    }
}
