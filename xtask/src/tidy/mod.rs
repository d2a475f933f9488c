//! `cargo xtask tidy`: repository rules that neither the compiler, clippy nor cargo-deny checks.
//!
//! - [`arrows`]: dependencies between our crates
//! - [`rules`]: length of files, openings of comments, ignored tests, sleeps, `unsafe`
//! - [`machine_names`]: paths and hosts of one machine
//!
//! A check takes one [`source::File`] and returns its findings; [`arrows`] takes all manifests. Every
//! finding is an error.

mod arrows;
mod machine_names;
mod rules;
mod source;

use std::fs;

use anyhow::{Context, Result, bail, ensure};

use crate::{checkout, command};
use source::{File, Finding};

const CHECKS: &[fn(&File) -> Vec<Finding>] = &[
    machine_names::check,
    rules::comment_openings,
    rules::file_length,
    rules::ignored_tests,
    rules::sleeps,
    rules::unsafe_code,
];

pub(crate) fn run() -> Result<()> {
    let files = read()?;
    let mut findings = arrows::check(&metadata()?, &files)?;
    for file in &files {
        findings.extend(CHECKS.iter().flat_map(|check| check(file)));
    }
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    let (checked, found) = (files.len(), findings.len());
    println!("tidy: {checked} files checked, {found} findings");
    if found > 0 {
        bail!("tidy found problems");
    }
    Ok(())
}

/// Reads the tracked text files, except the lock file.
fn read() -> Result<Vec<File>> {
    let mut files = Vec::new();
    for path in checkout::files()? {
        let bytes = fs::read(checkout::root().join(&path)).with_context(|| path.clone())?;
        match String::from_utf8(bytes) {
            Ok(text) if path != "Cargo.lock" => files.push(File::new(path, text)),
            _ => {}
        }
    }
    Ok(files)
}

fn metadata() -> Result<arrows::Metadata> {
    let mut cargo = command::cargo("metadata --format-version 1 --no-deps");
    let output = cargo.output().context("starting cargo")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    serde_json::from_slice(&output.stdout).context("parsing the output of cargo metadata")
}
