//! Rejects dependencies between our crates that are not in this table.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::source::{File, Finding};

/// Each crate with the crates it may depend on, besides `types`.
const CRATES: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("protocol", &[]),
    ("journal", &[]),
    ("process", &[]),
    ("sandbox", &["process"]),
    ("files", &[]),
    ("fetch", &[]),
    ("netproxy", &[]),
    (
        "engine",
        &["journal", "netproxy", "process", "sandbox", "files"],
    ),
    ("rpc", &["protocol"]),
    ("server", &["engine", "fetch", "files", "protocol", "rpc"]),
    (
        "client",
        &["engine", "fetch", "files", "journal", "protocol", "rpc"],
    ),
    ("mcp", &["client"]),
    ("cli", &["server", "engine", "files", "client", "mcp"]),
    ("testkit", &[]),
];

/// The remedy for a row without a dependency.
const UNUSED: &str = "remove it from the table in xtask/src/tidy/arrows.rs";

/// The used part of the output of `cargo metadata`.
#[derive(Deserialize)]
pub(super) struct Metadata {
    workspace_root: PathBuf,
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// None for a normal dependency.
    kind: Option<String>,
}

/// Finds dependencies that are not in the table, and rows of the table without a dependency.
/// `files` are used to find lines in manifests.
pub(super) fn check(metadata: &Metadata, files: &[File]) -> Result<Vec<Finding>> {
    let ours = |name: &str| metadata.packages.iter().any(|package| package.name == name);
    let mut findings = Vec::new();
    for package in &metadata.packages {
        let path = package
            .manifest_path
            .strip_prefix(&metadata.workspace_root)?;
        let manifest = files.iter().find(|file| Path::new(&file.path) == path);
        let manifest = manifest.with_context(|| format!("{path:?} is not tracked"))?;
        let from = crate_name(&package.name);
        // Nothing depends on xtask, so it may depend on everything.
        if from == "xtask" {
            continue;
        }
        let Some(row) = allowed(from) else {
            let what =
                format!("`{from}` has no row in the table of crates: decide what it may depend on");
            findings.push(Finding::new(manifest, 1, what));
            continue;
        };
        let mut used = Vec::new();
        for Dependency { name, kind } in &package.dependencies {
            let dev = kind.as_deref() == Some("dev");
            if !dev {
                used.push(crate_name(name));
            }
            if ours(name)
                && let Some(what) = objection(from, crate_name(name), dev)
            {
                findings.push(Finding::new(manifest, line_of(manifest, name), what));
            }
        }
        for to in row.iter().filter(|to| !used.contains(to)) {
            let what = format!("`{from}` does not depend on `{to}`: {UNUSED}");
            findings.push(Finding::new(manifest, 1, what));
        }
    }
    Ok(findings)
}

/// Returns the reason why a dependency is rejected. Dev-dependencies may point sideways but not up,
/// which would be a cycle.
fn objection(from: &str, to: &str, dev: bool) -> Option<String> {
    if dev {
        let up = to != "testkit" && (to == "xtask" || reaches(to, from));
        return up
            .then(|| format!("the tests of `{from}` depend on `{to}`, which depends on `{from}`"));
    }
    let fine = to == "types" || allowed(from).is_some_and(|crates| crates.contains(&to));
    (!fine).then(|| format!("`{from}` may not depend on `{to}`"))
}

fn allowed(name: &str) -> Option<&'static [&'static str]> {
    let row = CRATES.iter().find(|(listed, _)| *listed == name);
    row.map(|(_, below)| *below)
}

fn reaches(from: &str, to: &str) -> bool {
    if to == "types" {
        return from != "types";
    }
    allowed(from)
        .unwrap_or_default()
        .iter()
        .any(|next| *next == to || reaches(next, to))
}

/// The name of a package without the prefix.
fn crate_name(package: &str) -> &str {
    match package {
        "outpost" => "cli",
        _ => package.strip_prefix("outpost-").unwrap_or(package),
    }
}

fn line_of(manifest: &File, dependency: &str) -> usize {
    let matches = |line: &str| {
        line.strip_prefix(dependency)
            .is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    manifest
        .text
        .lines()
        .position(matches)
        .map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tidy::source::printed;

    /// A package and its dependencies, each with its kind.
    type Package<'a> = (&'a str, &'a [(&'a str, Option<&'a str>)]);

    fn all_found(packages: &[Package<'_>]) -> Vec<String> {
        let mut files = Vec::new();
        let mut listed = Vec::new();
        for (name, dependencies) in packages {
            let path = format!("crates/{name}/Cargo.toml");
            let dependencies: Vec<_> = dependencies
                .iter()
                .map(|(name, kind)| json!({"name": name, "kind": kind}))
                .collect();
            listed.push(json!({
                "name": name,
                "manifest_path": format!("/top/{path}"),
                "dependencies": dependencies,
            }));
            files.push(File::new(
                path,
                "[dependencies]\noutpost-server.workspace = true\n",
            ));
        }
        let metadata = json!({"workspace_root": "/top", "packages": listed});
        let metadata = serde_json::from_value(metadata).unwrap();
        printed(&check(&metadata, &files).unwrap())
    }

    /// Leaves out rows of the table that are unused because the test has few packages.
    fn found(packages: &[Package<'_>]) -> Vec<String> {
        let mut found = all_found(packages);
        found.retain(|finding| !finding.contains(UNUSED));
        found
    }

    #[test]
    fn upward_dependency_is_found_with_its_line() {
        let up = found(&[
            (
                "outpost-engine",
                &[("outpost-server", None), ("tokio", None)],
            ),
            ("outpost-server", &[("outpost-engine", None)]),
        ]);
        assert_eq!(up.len(), 1, "{up:?}");
        assert!(up[0].starts_with("crates/outpost-engine/Cargo.toml:2: `engine` may not"));
    }

    #[test]
    fn unlisted_dependency_is_found() {
        let journal: Package<'_> = ("outpost-journal", &[]);
        let skip = found(&[("outpost", &[("outpost-journal", None)]), journal]);
        assert_eq!(skip.len(), 1, "{skip:?}");
        let build = found(&[("outpost", &[("outpost-journal", Some("build"))]), journal]);
        assert_eq!(build.len(), 1, "{build:?}");
    }

    #[test]
    fn crate_without_a_row_is_found() {
        let new = found(&[("outpost-attic", &[])]);
        assert_eq!(new.len(), 1, "{new:?}");
        assert!(new[0].contains("`attic` has no row"), "{new:?}");
    }

    #[test]
    fn unused_row_is_found() {
        let found = all_found(&[("outpost-rpc", &[])]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("`rpc` does not depend on `protocol`"),
            "{found:?}"
        );
    }

    #[test]
    fn dev_dependencies_may_not_point_up() {
        assert_eq!(objection("protocol", "testkit", true), None);
        assert_eq!(objection("journal", "process", true), None);
        assert_eq!(objection("journal", "types", false), None);
        assert!(objection("types", "journal", true).is_some());
        assert!(objection("journal", "server", true).is_some());
        assert!(objection("journal", "cli", true).is_some());
        assert!(objection("journal", "testkit", false).is_some());
    }

    #[test]
    fn xtask_may_depend_on_all_crates() {
        let server: Package<'_> = ("outpost-server", &[]);
        assert_eq!(
            found(&[("xtask", &[("outpost-server", None)]), server]),
            [""; 0]
        );
        assert!(objection("cli", "xtask", false).is_some());
        assert!(objection("cli", "xtask", true).is_some());
    }

    #[test]
    fn table_has_no_cycles_and_no_unknown_crates() {
        for (name, below) in CRATES {
            for other in *below {
                assert!(
                    allowed(other).is_some(),
                    "{name} depends on {other}, which has no row"
                );
                assert!(!reaches(other, name), "{name} and {other} form a cycle");
            }
        }
    }
}
