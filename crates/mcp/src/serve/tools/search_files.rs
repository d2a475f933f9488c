//! The tool `search_files`.

use std::fmt;

use globset::{GlobBuilder, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{in_range, search::Search};
use crate::serve::{
    CallContext, Tool, ToolError,
    files::grep::{FoundLine, SearchLimits},
    text,
};

/// Maximum number of context lines.
const MAX_CONTEXT: usize = 20;
/// Maximum size of a compiled pattern.
const PATTERN_BYTES: usize = 4 * 1024 * 1024;

/// Finds lines by a regular expression, or files by name, below a directory. Skips binary
/// files, hidden files, and files that .gitignore excludes. Symbolic links are found by name
/// but not followed. Lines are returned with their numbers, for read_file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchFiles {
    /// A regular expression for lines, in the syntax of Rust and ripgrep. Without it, files are
    /// found by glob.
    pattern: Option<String>,
    /// A glob for file names ("*.rs") or paths below the directory ("src/**/*.ts"). All files if
    /// not given.
    glob: Option<String>,
    /// The directory or file to search; the default working directory if not given.
    path: Option<String>,
    /// Use the pattern literally, not as a regular expression.
    literal: Option<bool>,
    /// Ignore upper and lower case.
    ignore_case: Option<bool>,
    /// The number of lines to show before and after each match.
    #[schemars(range(min = 0, max = 20), extend("default" = 0))]
    context_lines: Option<u64>,
    /// Return only the names of files with a match.
    files_only: Option<bool>,
    /// Search hidden files and directories as well; .git is always skipped.
    include_hidden: Option<bool>,
    /// Search files that .gitignore excludes as well.
    include_ignored: Option<bool>,
    /// The maximum number of matches or files in the response.
    #[schemars(range(min = 1, max = 1000), extend("default" = 100))]
    max_matches: Option<u64>,
}

#[derive(Default, Serialize, JsonSchema)]
pub(super) struct SearchResult {
    path: String,
    /// The files with matches, in the order they were found.
    pub(super) files: Vec<FoundFile>,
    /// The number of matching lines, or of files if there is no pattern.
    pub(super) match_count: usize,
    /// The number of files searched.
    pub(super) searched_files: usize,
    /// Whether there are more matches: give a narrower path, glob or pattern, or a larger
    /// max_matches.
    pub(super) more: bool,
    /// Why the search is incomplete, if it is.
    pub(super) incomplete: Option<String>,
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

impl Tool for SearchFiles {
    type Output = SearchResult;

    async fn call(self, context: &CallContext<'_>) -> Result<SearchResult, ToolError> {
        let limits = context.server.limits();
        let range = 1..=limits.matches_max;
        let matches = in_range("max_matches", self.max_matches, limits.matches, range)?;
        let context_lines = in_range("context_lines", self.context_lines, 0, 0..=MAX_CONTEXT)?;
        let pattern = self.pattern()?;
        let glob = self.glob()?;
        if pattern.is_none() && glob.is_none() {
            return Err(ToolError::NothingToSearch);
        }
        let (files, path) = context.server.locate(self.path.as_deref()).await?;
        let search = Search {
            files,
            root: path.clone(),
            pattern,
            glob,
            include_hidden: self.include_hidden.unwrap_or(false),
            include_ignored: self.include_ignored.unwrap_or(false),
            files_only: self.files_only.unwrap_or(false),
            limits: SearchLimits {
                context: context_lines,
                matches,
                line_bytes: limits.line_bytes / 4,
                bytes: limits.listed_bytes,
            },
        };
        let search = search.run(limits);
        let found = context.run_file_operation("searching", search).await?;
        Ok(SearchResult {
            path: path.display().to_string(),
            ..found
        })
    }
}

impl SearchFiles {
    fn pattern(&self) -> Result<Option<Regex>, ToolError> {
        let Some(pattern) = &self.pattern else {
            return Ok(None);
        };
        let pattern = if self.literal.unwrap_or(false) {
            regex::escape(pattern)
        } else {
            pattern.clone()
        };
        let regex = RegexBuilder::new(&pattern)
            .case_insensitive(self.ignore_case.unwrap_or(false))
            .size_limit(PATTERN_BYTES)
            .build();
        let regex = regex.map_err(|error| ToolError::Pattern(Box::new(error)))?;
        Ok(Some(regex))
    }

    /// Compiles the glob. One without a slash matches at any depth.
    fn glob(&self) -> Result<Option<GlobMatcher>, ToolError> {
        let Some(glob) = &self.glob else {
            return Ok(None);
        };
        let glob = glob.trim_start_matches("./");
        let glob = if glob.contains('/') {
            glob.trim_start_matches('/').to_owned()
        } else {
            format!("**/{glob}")
        };
        let glob = GlobBuilder::new(&glob).literal_separator(true).build();
        Ok(Some(glob.map_err(ToolError::Glob)?.compile_matcher()))
    }
}

impl fmt::Display for SearchResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = if self.match_count == 0 {
            "no matches".to_owned()
        } else {
            let matches = text::count(self.match_count as u64, "match", "matches");
            let files = text::count(self.files.len() as u64, "file", "files");
            format!("{matches} in {files}")
        };
        let searched = text::count(self.searched_files as u64, "file", "files");
        write!(f, "{found} below {} ({searched} searched)", self.path)?;
        if self.more {
            f.write_str(
                "; there are more: give a narrower path, glob or pattern, or a larger max_matches",
            )?;
        }
        if let Some(reasons) = &self.incomplete {
            write!(f, "; the search is incomplete: {reasons}")?;
        }
        for file in &self.files {
            let suffix = if file.link { "  (link)" } else { "" };
            write!(f, "\n{}{suffix}", file.path)?;
            for line in &file.lines {
                let separator = if line.context { '-' } else { ':' };
                write!(f, "\n{:>6}{separator}\t{}", line.number, line.text)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(arguments: serde_json::Value) -> SearchFiles {
        serde_json::from_value(arguments).unwrap()
    }

    #[test]
    fn name_matches_at_any_depth_and_path_from_the_root() {
        let matches = |glob: &str, path: &str| {
            let matcher = arguments(serde_json::json!({"glob": glob})).glob().unwrap();
            matcher.unwrap().is_match(path)
        };
        assert!(matches("*.rs", "main.rs") && matches("*.rs", "src/a/b.rs"));
        assert!(matches("src/**/*.ts", "src/a/b.ts") && matches("src/**/*.ts", "src/b.ts"));
        assert!(!matches("src/*.ts", "src/a/b.ts") && !matches("src/*.ts", "lib/src/b.ts"));
        assert!(matches("*.{a,b}", "x.b") && matches("./src/*", "src/x"));
    }

    #[test]
    fn pattern_is_a_regex_unless_literal() {
        let found = |json, line: &str| {
            let pattern = arguments(json).pattern().unwrap().unwrap();
            pattern.is_match(line.as_bytes())
        };
        assert!(found(serde_json::json!({"pattern": "a.c"}), "abc"));
        let literal = serde_json::json!({"pattern": "a.c", "literal": true});
        assert!(!found(literal.clone(), "abc") && found(literal, "a.c"));
        let any_case = serde_json::json!({"pattern": "straße", "ignore_case": true});
        assert!(found(any_case, "STRAßE"));
        let invalid = arguments(serde_json::json!({"pattern": "("}));
        assert!(matches!(invalid.pattern(), Err(ToolError::Pattern(_))));
    }
}
