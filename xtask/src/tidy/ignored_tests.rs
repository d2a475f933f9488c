//! Rejects ignored tests.

use super::finding::Finding;
use super::source::File;

pub(super) fn check(file: &File) -> Vec<Finding> {
    file.numbered()
        .filter(|(_, line)| line.code.contains("#[ignore"))
        .map(|(number, _)| {
            Finding::new(
                file,
                number,
                "ignored test: repair it, or remove it and say why",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_test_is_found() {
        let text = "#[ignore]\nfn a() {}\n#[ignore = \"slow\"]\nfn b() {}\n";
        assert_eq!(check(&File::new("a.rs", text)).len(), 2);
    }

    #[test]
    fn mention_in_text_is_accepted() {
        let text = "// #[ignore]\nlet ignore = \"#[ignore]\";\n";
        assert_eq!(check(&File::new("a.rs", text)), []);
    }
}
