//! Marks of unfinished work: a branch may have them, a commit may not.

use super::finding::Finding;
use super::source::{File, after_word};

pub(super) fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.numbered() {
        if line.code.contains("#[ignore") {
            let what = "an ignored test says nothing: repair it, or remove it and say why";
            findings.push(Finding::new(file, number, what));
        }
        for mark in ["todo", "unimplemented"] {
            if after_word(&line.code, mark).any(|rest| rest.starts_with('!')) {
                let what =
                    format!("`{mark}!` is a crash that waits for a user: finish it or refuse it");
                findings.push(Finding::new(file, number, what));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::printed;

    #[test]
    fn unfinished_work_is_found() {
        let text = "#[ignore]\nfn a() { todo!() }\n#[ignore = \"slow\"]\nunimplemented!(\"x\");\n";
        let found = printed(&check(&File::new("a.rs", text)));
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[1].starts_with("a.rs:2: `todo!`"), "{found:?}");
    }

    #[test]
    fn talking_about_it_is_fine() {
        let text = "// todo!()\nlet ignore = \"#[ignore]\";\nlet todo = 1;\n";
        assert_eq!(check(&File::new("a.rs", text)), []);
    }
}
