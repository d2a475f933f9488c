//! Rejects comments that open with a pronoun instead of their subject.

use super::finding::Finding;
use super::source::File;

/// Openings that leave the reader to guess the subject of the sentence.
const BANNED: &[&str] = &[
    "What", "Who", "Whose", "Whoever", "Nobody", "Somebody", "The same",
];

pub(super) fn check(file: &File) -> Vec<Finding> {
    file.numbered()
        .filter_map(|(number, line)| Some((number, banned_opening(&line.comment)?)))
        .map(|(number, opening)| {
            let what = format!(
                "comment opens with \"{opening}\": start with the subject, as in \"Counts active \
                 connections\""
            );
            Finding::new(file, number, what)
        })
        .collect()
}

fn banned_opening(comment: &str) -> Option<&'static str> {
    let text = comment.trim_start_matches(['/', '!']).trim_start();
    BANNED.iter().copied().find(|opening| {
        text.strip_prefix(opening)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '\''))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banned_opening_is_found_in_any_kind_of_comment() {
        for comment in [
            "//! What it is.",
            "/// Who reads.",
            "// The same, for pipes.",
            "    /// Nobody reads it.",
        ] {
            assert_eq!(check(&File::new("a.rs", comment)).len(), 1, "{comment}");
        }
    }

    #[test]
    fn other_openings_and_strings_are_accepted() {
        let text = "/// Whole messages.\n/// Counts what is left.\nlet a = \"// What\";\n";
        assert_eq!(check(&File::new("a.rs", text)), []);
    }
}
