//! Rejects dependencies between our crates that are not in this table.

use anyhow::{Context, Result};
use serde_json::Value;

use super::finding::Finding;
use super::source::File;

/// Each crate with the crates it may depend on, besides `types`.
const CRATES: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("protocol", &[]),
    ("journal", &[]),
    ("process", &[]),
    ("sandbox", &["process"]),
    ("files", &[]),
    ("fetch", &[]),
    ("engine", &["journal", "process", "sandbox", "files"]),
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

/// Checks the output of `cargo metadata`. `files` are used to find lines in manifests.
pub(super) fn check(metadata: &Value, files: &[File]) -> Result<Vec<Finding>> {
    let root = text(metadata, "workspace_root")?;
    let packages = list(metadata, "packages")?;
    let names = packages
        .iter()
        .map(|package| text(package, "name"))
        .collect::<Result<Vec<_>>>()?;

    let mut findings = Vec::new();
    for package in packages {
        let path = text(package, "manifest_path")?;
        let path = path
            .strip_prefix(root)
            .unwrap_or(path)
            .trim_start_matches('/');
        let manifest = files
            .iter()
            .find(|file| file.path == path)
            .with_context(|| format!("{path} is not tracked"))?;
        let from = crate_name(text(package, "name")?);
        // Nothing depends on xtask, so it may depend on everything.
        if from == "xtask" {
            continue;
        }
        if allowed(from).is_none() {
            let what =
                format!("`{from}` has no row in the table of crates: decide what it may depend on");
            findings.push(Finding::new(manifest, 1, what));
            continue;
        }
        for dependency in list(package, "dependencies")? {
            let name = text(dependency, "name")?;
            if !names.contains(&name) {
                continue;
            }
            let kind = dependency.get("kind").and_then(Value::as_str);
            if let Some(what) = objection(from, crate_name(name), kind == Some("dev")) {
                findings.push(Finding::new(manifest, line_of(manifest, name), what));
            }
        }
    }
    Ok(findings)
}

/// Finds rows of the table that allow a dependency which no manifest has.
pub(super) fn check_unused(metadata: &Value, files: &[File]) -> Result<Vec<Finding>> {
    let table = files
        .iter()
        .find(|file| file.path.ends_with("tidy/arrows.rs"))
        .context("tidy/arrows.rs is not tracked")?;
    let mut findings = Vec::new();
    for package in list(metadata, "packages")? {
        let from = crate_name(text(package, "name")?);
        let is_dev = |dependency: &&Value| dependency["kind"] == "dev";
        let dependencies = list(package, "dependencies")?
            .iter()
            .filter(|dependency| !is_dev(dependency))
            .map(|dependency| Ok(crate_name(text(dependency, "name")?)))
            .collect::<Result<Vec<_>>>()?;
        for to in allowed(from).unwrap_or_default() {
            if !dependencies.contains(to) {
                let what = format!("`{from}` does not depend on `{to}`: remove it from the table");
                findings.push(Finding::new(table, 1, what));
            }
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

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    let text = value.get(key).and_then(Value::as_str);
    text.with_context(|| format!("cargo metadata without `{key}`"))
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    let list = value.get(key).and_then(Value::as_array);
    list.with_context(|| format!("cargo metadata without `{key}`"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tidy::finding::printed;

    /// A package and its dependencies, each with its kind.
    type Package<'a> = (&'a str, &'a [(&'a str, Option<&'a str>)]);

    fn found(packages: &[Package<'_>]) -> Vec<String> {
        let mut files = Vec::new();
        let mut listed = Vec::new();
        for (name, dependencies) in packages {
            let path = format!("crates/{name}/Cargo.toml");
            let dependencies: Vec<Value> = dependencies
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
        printed(&check(&metadata, &files).unwrap())
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
        let metadata = json!({"packages": [{
            "name": "outpost-rpc",
            "dependencies": [],
        }]});
        let files = [File::new("xtask/src/tidy/arrows.rs", "")];
        let found = printed(&check_unused(&metadata, &files).unwrap());
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
