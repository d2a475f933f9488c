//! The rules of this house that neither the compiler nor clippy knows, one file each.
//!
//! A check takes one file and returns what it found; only [`arrows`] looks at all packages at
//! once. [`source`] tells a check what in a Rust file is code, comment or test. A check never
//! warns: what isn't worth failing for isn't worth checking.

mod arrows;
mod finding;
mod marks;
mod places;
mod roots;
mod size;
mod sleeps;
mod source;
mod unsafety;

use std::fs;

use anyhow::{Context, Result, bail, ensure};

use crate::{checkout, command};
use finding::Finding;
use source::File;

const CHECKS: &[fn(&File) -> Vec<Finding>] = &[
    marks::check,
    places::check,
    roots::check,
    size::check,
    sleeps::check,
    unsafety::check,
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
        bail!("the tree isn't tidy");
    }
    Ok(())
}

/// Our text files. The lock file is cargo's, not ours.
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

fn metadata() -> Result<serde_json::Value> {
    let args = ["metadata", "--format-version", "1", "--no-deps"];
    let output = command::cargo(args).output().context("starting cargo")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    serde_json::from_slice(&output.stdout).context("reading what cargo metadata printed")
}
