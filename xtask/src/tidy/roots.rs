//! The root file of a crate is its map, so it starts by saying what the crate is.

use super::finding::Finding;
use super::source::File;

pub(super) fn check(file: &File) -> Vec<Finding> {
    let says_what_it_is = file
        .text
        .strip_prefix("//!")
        .and_then(|rest| rest.lines().next())
        .is_some_and(|line| !line.trim().is_empty());
    if !is_root(&file.path) || says_what_it_is {
        return Vec::new();
    }
    let what = "a crate's root starts with `//!` and what the crate is: it is where readers begin";
    vec![Finding::new(file, 1, what)]
}

fn is_root(path: &str) -> bool {
    matches!(
        path.split('/').collect::<Vec<_>>()[..],
        ["crates", _, "src", "lib.rs" | "main.rs"] | ["xtask", "src", "main.rs"]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_without_a_first_sentence_is_found() {
        for text in ["", "mod a;\n", "// plain\n", "//!\n//! late\n"] {
            let findings = check(&File::new("crates/x/src/lib.rs", text));
            assert_eq!(findings.len(), 1, "{text:?}");
        }
    }

    #[test]
    fn other_files_may_start_as_they_like() {
        assert_eq!(check(&File::new("crates/x/src/a.rs", "mod a;\n")), []);
        assert_eq!(check(&File::new("crates/x/src/lib.rs", "//! X.\n")), []);
    }
}
