//! `cargo xtask test`: all checks and tests. Cheap steps come first, and the first failure ends it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::command::{self, cargo, find, succeeds};
use crate::{setup, tidy, unprivileged};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run the tests a second time as an unprivileged user
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value_t = When::Auto,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "always"
    )]
    unprivileged: When,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum When {
    /// As root, if setpriv is installed
    Auto,
    /// Fail if it is not possible
    Always,
    /// Never
    Never,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut report = Report::default();
    let outcome = all(args, &mut report);
    println!("\n{}", report.summary());
    outcome
}

fn all(args: &Args, report: &mut Report) -> Result<()> {
    let run = |line| command::run(&mut cargo(line));

    report.step("setup", setup::run)?;
    report.step("fmt", || run("fmt --all --check"))?;
    report.step("tidy", tidy::run)?;
    // Optional, because it takes minutes to build. Advisories change without a commit, so they are
    // not checked.
    if succeeds(&mut cargo("deny --version")) {
        report.step("deny", || run("deny check bans licenses sources"))?;
    }
    report.step("clippy", || {
        run("clippy --workspace --all-targets -- -D warnings")
    })?;
    // A step of its own, to measure the time of the tests alone.
    report.step("build", || run("nextest run --workspace --no-run"))?;
    report.step("tests", || run("nextest run --workspace --no-fail-fast"))?;
    report.step("doc tests", || run("test --workspace --doc"))?;
    if second_run(args.unprivileged)? {
        report.step("unprivileged", unprivileged::run)?;
    }
    Ok(())
}

fn second_run(when: When) -> Result<bool> {
    let root = rustix::process::geteuid().is_root();
    let setpriv = find("setpriv").is_some();
    if when == When::Always {
        ensure!(root, "--unprivileged needs root");
        ensure!(setpriv, "setpriv is missing (Debian package util-linux)");
    }
    Ok(when != When::Never && root && setpriv)
}

/// The steps so far: name, duration, and whether it passed.
#[derive(Default)]
struct Report {
    steps: Vec<(&'static str, Duration, bool)>,
}

impl Report {
    fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        println!("\n== {name}");
        let start = Instant::now();
        let outcome = work();
        self.steps.push((name, start.elapsed(), outcome.is_ok()));
        outcome.with_context(|| format!("step `{name}` failed"))
    }

    fn summary(&self) -> String {
        let line = |(name, took, passed): &(&str, Duration, bool)| {
            let verdict = if *passed { "ok" } else { "FAILED" };
            format!("{name:<13} {verdict:<7} {:>7.1} s\n", took.as_secs_f64())
        };
        self.steps.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_step_is_named_and_listed() {
        let mut report = Report::default();
        report.step("first", || Ok(())).unwrap();
        let error = report
            .step("second", || anyhow::bail!("no luck"))
            .unwrap_err();
        assert_eq!(format!("{error:#}"), "step `second` failed: no luck");

        let summary = report.summary();
        let verdicts: Vec<Vec<&str>> = summary
            .lines()
            .map(|line| line.split_whitespace().take(2).collect())
            .collect();
        assert_eq!(verdicts, [["first", "ok"], ["second", "FAILED"]]);
    }
}
