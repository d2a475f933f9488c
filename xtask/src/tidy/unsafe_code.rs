//! Rejects `unsafe` outside the two crates that make system calls, so that all of it can be reviewed.

use super::finding::Finding;
use super::source::{File, has_word};

const CRATES: &[&str] = &["crates/process/", "crates/sandbox/"];

pub(super) fn check(file: &File) -> Vec<Finding> {
    if CRATES.iter().any(|dir| file.path.starts_with(dir)) {
        return Vec::new();
    }
    file.numbered()
        .filter(|(_, line)| has_word(&line.code, "unsafe"))
        .map(|(number, _)| {
            let what = "`unsafe` is allowed in crates/process and crates/sandbox only";
            Finding::new(file, number, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_in_another_crate_is_found() {
        let text = "fn a() {\n    unsafe { b() }\n}\n";
        assert_eq!(check(&File::new("crates/engine/src/a.rs", text)).len(), 1);
        assert_eq!(check(&File::new("tests/a.rs", text)).len(), 1);
        assert_eq!(check(&File::new("crates/process/src/a.rs", text)), []);
    }

    #[test]
    fn forbid_attribute_is_accepted() {
        let text = "#![forbid(unsafe_code)] // no unsafe here\n";
        assert_eq!(check(&File::new("crates/engine/src/lib.rs", text)), []);
    }
}
