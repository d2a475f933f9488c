//! Dependencies between our crates point down only, along the arrows of this table.

use anyhow::{Context, Result};
use serde_json::Value;

use super::finding::Finding;
use super::source::File;

/// Each room and the rooms it may know. A crate without a row is a finding, so that a new room
/// gets its place by a decision.
const ROOMS: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("journal", &[]),
    ("process", &[]),
    ("sandbox", &[]),
    ("files", &[]),
    ("fetch", &[]),
    ("telemetry", &[]),
    ("engine", &["journal", "process", "sandbox", "files"]),
    ("rpc", &["protocol"]),
    ("server", &["engine", "fetch", "files", "protocol", "rpc"]),
    (
        "client",
        &["engine", "fetch", "files", "journal", "protocol", "rpc"],
    ),
    ("mcp", &["client", "engine", "protocol", "rpc"]),
    (
        "cli",
        &["server", "engine", "files", "client", "mcp", "telemetry"],
    ),
    ("testkit", &["protocol"]),
];

/// Takes what `cargo metadata` printed, and the files to find the lines of the manifests in.
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
            .with_context(|| format!("{path} isn't among our files"))?;
        let from = room(text(package, "name")?);
        // Nothing depends on the program you are reading, so it may know everything.
        if from == "xtask" {
            continue;
        }
        if allowed(from).is_none() {
            let what =
                format!("`{from}` has no row in tidy's table of rooms: decide what it may know");
            findings.push(Finding::new(manifest, 1, what));
            continue;
        }
        for dependency in list(package, "dependencies")? {
            let name = text(dependency, "name")?;
            if !names.contains(&name) {
                continue;
            }
            let kind = dependency.get("kind").and_then(Value::as_str);
            if let Some(what) = objection(from, room(name), kind == Some("dev")) {
                findings.push(Finding::new(manifest, line_of(manifest, name), what));
            }
        }
    }
    Ok(findings)
}

/// What is wrong with an arrow, if anything is. Tests may look sideways but not up: what is above
/// could then never be built without them.
fn objection(from: &str, to: &str, dev: bool) -> Option<String> {
    if dev {
        let up = to != "testkit" && (to == "xtask" || reaches(to, from));
        return up.then(|| format!("the tests of `{from}` use `{to}`, which stands above it"));
    }
    let fine = allowed(from).is_some_and(|rooms| rooms.contains(&to));
    (!fine).then(|| format!("`{from}` may not know `{to}`: dependencies point down only"))
}

fn allowed(room: &str) -> Option<&'static [&'static str]> {
    let row = ROOMS.iter().find(|(name, _)| *name == room);
    row.map(|(_, below)| *below)
}

fn reaches(from: &str, to: &str) -> bool {
    allowed(from)
        .unwrap_or_default()
        .iter()
        .any(|next| *next == to || reaches(next, to))
}

/// The room of a package: its name without ours before it.
fn room(package: &str) -> &str {
    match package {
        "outpost" => "cli",
        _ => package.strip_prefix("outpost-").unwrap_or(package),
    }
}

fn line_of(manifest: &File, dependency: &str) -> usize {
    let names_it = |line: &str| {
        line.strip_prefix(dependency)
            .is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    manifest
        .text
        .lines()
        .position(names_it)
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
    fn an_arrow_up_is_found_with_its_line() {
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
    fn an_arrow_that_skips_the_table_is_found() {
        let journal: Package<'_> = ("outpost-journal", &[]);
        let skip = found(&[("outpost", &[("outpost-journal", None)]), journal]);
        assert_eq!(skip.len(), 1, "{skip:?}");
        let build = found(&[("outpost", &[("outpost-journal", Some("build"))]), journal]);
        assert_eq!(build.len(), 1, "{build:?}");
    }

    #[test]
    fn a_room_nobody_decided_about_is_found() {
        let new = found(&[("outpost-attic", &[])]);
        assert_eq!(new.len(), 1, "{new:?}");
        assert!(new[0].contains("`attic` has no row"), "{new:?}");
    }

    #[test]
    fn tests_may_use_the_testkit_and_what_is_beside_them_but_nothing_above() {
        assert_eq!(objection("protocol", "testkit", true), None);
        assert_eq!(objection("journal", "process", true), None);
        assert!(objection("journal", "server", true).is_some());
        assert!(objection("journal", "cli", true).is_some());
        assert!(objection("journal", "testkit", false).is_some());
    }

    #[test]
    fn the_builder_of_all_may_know_all_and_nobody_may_know_it() {
        let server: Package<'_> = ("outpost-server", &[]);
        assert_eq!(
            found(&[("xtask", &[("outpost-server", None)]), server]),
            [""; 0]
        );
        assert!(objection("cli", "xtask", false).is_some());
        assert!(objection("cli", "xtask", true).is_some());
    }

    #[test]
    fn the_table_has_no_circles_and_no_strangers() {
        for (name, below) in ROOMS {
            for other in *below {
                assert!(
                    allowed(other).is_some(),
                    "{name} knows {other}, which has no row"
                );
                assert!(!reaches(other, name), "{name} and {other} know each other");
            }
        }
    }
}
