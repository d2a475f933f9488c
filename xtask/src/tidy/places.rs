//! Names of one machine: its folders, and the hosts it fetches packages from. They mean nothing
//! to anybody else and tell strangers what they needn't know.

use std::iter;
use std::path::Path;

use super::finding::Finding;
use super::source::File;
use crate::checkout;

/// Where people's own folders are; a name follows. In two halves, or they would be findings.
const HOMES: &[&str] = &[concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Root's own folder.
const ROOT: &str = concat!("/ro", "ot/");

const HOSTS: &[&str] = &[
    concat!("arti", "factory"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("registry.", "npmjs.org"),
    concat!("deb.", "debian.org"),
    concat!("py", "pi.org"),
];

/// Files that may name such places all the same: path and reason.
const EXCEPTIONS: &[(&str, &str)] = &[(
    "crates/protocol/tests/data/coding-agent.jsonl",
    "a recording is worth something only as it was recorded",
)];

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
        if names_a_folder(line, &checkout) {
            let what = "this is a folder of one machine, which no other has: use a relative path";
            findings.push(Finding::new(file, number, what));
        }
        if HOSTS.iter().any(|host| line.contains(host)) {
            let what = "where a machine gets its packages from is its own setting, not ours";
            findings.push(Finding::new(file, number, what));
        }
    }
    findings
}

fn names_a_folder(line: &str, checkout: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let absolute = |folder: &str| {
        line.match_indices(folder)
            .filter(|(at, _)| !line[..*at].ends_with(|c| in_name(c) || c == '.'))
            .any(|(at, _)| {
                let name = &line[at + folder.len()..];
                let rest = name.trim_start_matches(in_name);
                !HOMES.contains(&folder) || (rest.len() < name.len() && rest.starts_with('/'))
            })
    };
    absolute(ROOT) || absolute(checkout) || HOMES.iter().any(|home| absolute(home))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::printed;

    fn found(text: &str) -> Vec<String> {
        printed(&find(&File::new("notes.md", text), Path::new("/builds/it")))
    }

    #[test]
    fn folders_of_one_machine_are_found() {
        let home = HOMES[0];
        assert_eq!(found(&format!("fine\ncd {ROOT}x")).len(), 1);
        assert_eq!(found(&format!("file://{home}someone/x")).len(), 1);
        assert_eq!(found("see /builds/it/notes").len(), 1);
        assert!(found(&format!("\n{ROOT}x"))[0].starts_with("notes.md:2: "));
    }

    #[test]
    fn hosts_of_packages_are_found() {
        for host in HOSTS {
            assert_eq!(found(&format!("https://{host}/x")).len(), 1, "{host}");
        }
    }

    #[test]
    fn what_only_looks_like_one_is_fine() {
        let (home, root) = (HOMES[0], ROOT);
        let fine = format!("{home}<user>/x\n{home}\nsandbox{root}x\n.{root}x\ncrates.io\n");
        assert_eq!(found(&fine), [""; 0]);
    }
}
