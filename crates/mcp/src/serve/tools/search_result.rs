//! The result of a search, with the reasons why it may be incomplete.

use schemars::JsonSchema;
use serde::Serialize;

use crate::serve::{files::grep::FoundLine, text};

/// The matches of a search.
#[derive(Default)]
pub(super) struct SearchResult {
    pub(super) files: Vec<FoundFile>,
    /// Number of matching lines, or of files if the search has no pattern.
    pub(super) matches: usize,
    pub(super) searched: usize,
    pub(super) more: bool,
    pub(super) incomplete: Incomplete,
    /// Total size of lines and names.
    pub(super) bytes: usize,
}

// No doc comment: it would become part of the tool's schema.
#[derive(Serialize, JsonSchema)]
pub(super) struct FoundFile {
    /// The path relative to the searched directory.
    pub(super) path: String,
    /// Whether it is a symbolic link.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub(super) link: bool,
    /// The matching lines and their context.
    pub(super) lines: Vec<FoundLine>,
}

/// Why a search is incomplete.
#[derive(Debug, Default)]
pub(super) struct Incomplete {
    /// The last limit that was reached.
    pub(super) limit: Option<&'static str>,
    pub(super) unreadable_directories: u64,
    pub(super) unreadable_files: u64,
}

impl Incomplete {
    /// Describes the reasons; `None` if the search is complete.
    pub(super) fn reasons(&self) -> Option<String> {
        let directories = text::count(self.unreadable_directories, "directory", "directories");
        let files = text::count(self.unreadable_files, "file", "files");
        let reasons = [
            self.limit.map(str::to_owned),
            (self.unreadable_directories > 0).then(|| format!("{directories} could not be read")),
            (self.unreadable_files > 0).then(|| format!("{files} could not be read")),
        ];
        let reasons: Vec<_> = reasons.into_iter().flatten().collect();
        (!reasons.is_empty()).then(|| reasons.join(", "))
    }
}

impl SearchResult {
    pub(super) fn add(&mut self, file: FoundFile) {
        let lines = file.lines.iter().map(|line| line.text.len());
        self.bytes += file.path.len() + lines.sum::<usize>();
        self.files.push(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_lists_every_reason() {
        assert_eq!(Incomplete::default().reasons(), None);
        let incomplete = Incomplete {
            limit: Some("timed out"),
            unreadable_directories: 1,
            unreadable_files: 2,
        };
        assert_eq!(
            incomplete.reasons().as_deref(),
            Some("timed out, 1 directory could not be read, 2 files could not be read")
        );
    }
}
