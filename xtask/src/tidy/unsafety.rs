//! `unsafe` stays in the rooms that talk to the operating system, where whoever reviews it looks.

use super::finding::Finding;
use super::source::{File, has_word};

const ROOMS: &[&str] = &["crates/process/", "crates/sandbox/"];

pub(super) fn check(file: &File) -> Vec<Finding> {
    if ROOMS.iter().any(|room| file.path.starts_with(room)) {
        return Vec::new();
    }
    file.numbered()
        .filter(|(_, line)| has_word(&line.code, "unsafe"))
        .map(|(number, _)| {
            let what = "`unsafe` belongs to crates/process and crates/sandbox alone";
            Finding::new(file, number, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_in_another_room_is_found() {
        let text = "fn a() {\n    unsafe { b() }\n}\n";
        assert_eq!(check(&File::new("crates/engine/src/a.rs", text)).len(), 1);
        assert_eq!(check(&File::new("tests/a.rs", text)).len(), 1);
        assert_eq!(check(&File::new("crates/process/src/a.rs", text)), []);
    }

    #[test]
    fn forbidding_it_is_fine() {
        let text = "#![forbid(unsafe_code)] // no unsafe here\n";
        assert_eq!(check(&File::new("crates/engine/src/lib.rs", text)), []);
    }
}
