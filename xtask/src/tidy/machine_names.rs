//! Rejects paths and package hosts of one machine, which are meaningless elsewhere.

use std::iter;
use std::path::Path;

use super::source::{File, Finding};
use crate::checkout;

/// Parents of home directories. Split, so that this file has no findings.
const HOMES: &[&str] = &[concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// The home directory of root.
const ROOT: &str = concat!("/ro", "ot/");

const HOSTS: &[&str] = &[
    concat!("arti", "factory"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("registry.", "npmjs.org"),
    concat!("deb.", "debian.org"),
    concat!("py", "pi.org"),
];

/// Excepted files: path and reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "crates/protocol/tests/data/coding-agent.jsonl",
        "a recording must stay unchanged",
    ),
    (
        "crates/netproxy/src/presets.rs",
        "built-in network policies name public hosts",
    ),
    (
        "docs/network.md",
        "built-in network policies name public hosts",
    ),
];

pub(super) fn check(file: &File) -> Vec<Finding> {
    if EXCEPTIONS.iter().any(|(path, _)| *path == file.path) {
        return Vec::new();
    }
    find(file, checkout::root())
}

fn find(file: &File, checkout: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    let checkout = format!("{}/", checkout.display());
    for (number, line) in iter::zip(1.., file.text.lines()) {
        if has_machine_path(line, &checkout) {
            let what = "path of one machine: use a relative path";
            findings.push(Finding::new(file, number, what));
        }
        if HOSTS.iter().any(|host| line.contains(host)) {
            let what = "host of a package registry: it is a setting of the machine";
            findings.push(Finding::new(file, number, what));
        }
    }
    findings
}

fn has_machine_path(line: &str, checkout: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let absolute = |dir: &str| {
        line.match_indices(dir)
            .filter(|(at, _)| !line[..*at].ends_with(|c| in_name(c) || c == '.'))
            .any(|(at, _)| {
                let name = &line[at + dir.len()..];
                let rest = name.trim_start_matches(in_name);
                !HOMES.contains(&dir) || (rest.len() < name.len() && rest.starts_with('/'))
            })
    };
    absolute(ROOT) || absolute(checkout) || HOMES.iter().any(|home| absolute(home))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::printed;

    fn found(text: &str) -> Vec<String> {
        printed(&find(&File::new("notes.md", text), Path::new("/builds/it")))
    }

    #[test]
    fn machine_paths_are_found() {
        let home = HOMES[0];
        assert_eq!(found(&format!("fine\ncd {ROOT}x")).len(), 1);
        assert_eq!(found(&format!("file://{home}someone/x")).len(), 1);
        assert_eq!(found("see /builds/it/notes").len(), 1);
        assert!(found(&format!("\n{ROOT}x"))[0].starts_with("notes.md:2: "));
    }

    #[test]
    fn package_hosts_are_found() {
        for host in HOSTS {
            assert_eq!(found(&format!("https://{host}/x")).len(), 1, "{host}");
        }
    }

    #[test]
    fn similar_text_is_accepted() {
        let (home, root) = (HOMES[0], ROOT);
        let fine = format!("{home}<user>/x\n{home}\nsandbox{root}x\n.{root}x\ncrates.io\n");
        assert_eq!(found(&fine), [""; 0]);
    }
}
