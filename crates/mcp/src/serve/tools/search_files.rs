//! What is found in files.

use std::fmt::Write as _;

use globset::{GlobBuilder, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    hunt::{Found, Hunt},
    ranged,
};
use crate::serve::{Answer, Call, Effect, Mishap, Tool, Workbench, files::grep::Wish, words};

/// The most lines around one that matches.
const MOST_CONTEXT: u64 = 20;
/// What a pattern may become when it is prepared.
const PATTERN_BYTES: usize = 4 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchFiles {
    /// A regular expression for lines, in the syntax of Rust and ripgrep. Without it the files
    /// themselves are found, by glob.
    pattern: Option<String>,
    /// Which files, by name ("*.rs") or by path below the directory ("src/**/*.ts"). All if not
    /// given.
    glob: Option<String>,
    /// The directory to search, or a single file; the default directory if not given.
    path: Option<String>,
    /// Take the pattern as it is written, not as a regular expression.
    literal: Option<bool>,
    /// Make no difference between upper and lower case.
    ignore_case: Option<bool>,
    /// How many lines to show before and after each one that matches.
    #[schemars(range(min = 0, max = 20), extend("default" = 0))]
    context_lines: Option<u64>,
    /// Tell only which files have a match.
    files_only: Option<bool>,
    /// Search what begins with a dot as well; .git is always left alone.
    include_hidden: Option<bool>,
    /// Search what a .gitignore leaves out as well.
    include_ignored: Option<bool>,
    /// How many matches, or files, the answer has at most.
    #[schemars(range(min = 1, max = 1000), extend("default" = 100))]
    max_matches: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Finds {
    path: String,
    /// The files with something in them, in the order they were found.
    files: Vec<InFile>,
    /// How many lines match, or how many files there are where lines were not asked for.
    match_count: u64,
    /// How many files were looked at.
    searched_files: u64,
    /// Whether there is more than the answer has: give a narrower path, glob or pattern, or a larger
    /// max_matches.
    more: bool,
    /// Why not everything was searched, if that is so.
    incomplete: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct InFile {
    /// Relative to the directory that was searched.
    path: String,
    /// Whether it is a symbolic link.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    link: bool,
    /// The lines that match, and those around them.
    lines: Vec<Line>,
}

#[derive(Serialize, JsonSchema)]
struct Line {
    /// From 1.
    number: u64,
    text: String,
    /// Whether it doesn't match itself and is only beside one that does.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    context: bool,
}

impl Tool for SearchFiles {
    const NAME: &'static str = "search_files";
    const TITLE: &'static str = "Search files";
    const DESCRIPTION: &'static str = "Finds lines in files by a regular expression, or files by \
        their name, below a directory. Leaves alone what is no text, what begins with a dot, and \
        what a .gitignore leaves out. Symbolic links are found by their name, and not followed. The \
        lines come with their numbers, for read_file.";
    const EFFECT: Effect = Effect::Looks;

    type Answer = Finds;

    async fn perform(self, bench: &Workbench, call: &Call) -> Result<Finds, Mishap> {
        let bounds = bench.bounds();
        let range = (1, bounds.matches_max as u64);
        let most = ranged(
            "max_matches",
            self.max_matches,
            bounds.matches as u64,
            range,
        )?;
        let context = ranged("context_lines", self.context_lines, 0, (0, MOST_CONTEXT))?;
        let pattern = self.pattern()?;
        let glob = self.glob()?;
        if pattern.is_none() && glob.is_none() {
            return Err(Mishap::NothingToSearch);
        }
        let footing = bench.footing().await?;
        let path = bench.path(&footing, self.path.as_deref());
        let hunt = Hunt {
            files: bench.files(&footing),
            root: path.clone(),
            pattern,
            glob,
            hidden: self.include_hidden.unwrap_or(false),
            ignored: self.include_ignored.unwrap_or(false),
            files_only: self.files_only.unwrap_or(false),
            wish: Wish {
                context: usize::try_from(context).unwrap_or(0),
                most: usize::try_from(most).unwrap_or(bounds.matches_max),
                line_bytes: bounds.line_bytes / 4,
                bytes: bounds.listed_bytes,
            },
        };
        let say = || "searching".to_owned();
        let found = call.wait(bounds.search, say, hunt.run(bounds)).await??;
        Ok(Finds::of(path.display().to_string(), found))
    }
}

impl SearchFiles {
    fn pattern(&self) -> Result<Option<Regex>, Mishap> {
        let Some(pattern) = &self.pattern else {
            return Ok(None);
        };
        let pattern = match self.literal.unwrap_or(false) {
            true => regex::escape(pattern),
            false => pattern.clone(),
        };
        let regex = RegexBuilder::new(&pattern)
            .case_insensitive(self.ignore_case.unwrap_or(false))
            .size_limit(PATTERN_BYTES)
            .build();
        let regex = regex.map_err(|error| Mishap::Pattern(Box::new(error)))?;
        Ok(Some(regex))
    }

    /// A name alone may be anywhere, as everybody expects of it.
    fn glob(&self) -> Result<Option<GlobMatcher>, Mishap> {
        let Some(glob) = &self.glob else {
            return Ok(None);
        };
        let glob = glob.trim_start_matches("./");
        let anywhere = match glob.contains('/') {
            true => glob.trim_start_matches('/').to_owned(),
            false => format!("**/{glob}"),
        };
        let glob = GlobBuilder::new(&anywhere).literal_separator(true).build();
        Ok(Some(glob.map_err(Mishap::Glob)?.compile_matcher()))
    }
}

impl Finds {
    fn of(path: String, found: Found) -> Self {
        let files = found.files.into_iter().map(|file| InFile {
            path: file.path,
            link: file.link,
            lines: file
                .hits
                .into_iter()
                .map(|hit| Line {
                    number: hit.line,
                    text: hit.text,
                    context: hit.context,
                })
                .collect(),
        });
        Finds {
            path,
            files: files.collect(),
            match_count: found.matches as u64,
            searched_files: found.searched as u64,
            more: found.more,
            incomplete: found.shortfall.words(),
        }
    }
}

impl Answer for Finds {
    fn words(&self) -> String {
        let found = match self.match_count {
            0 => "nothing was found".to_owned(),
            _ => {
                let matches = words::count(self.match_count, "match", "matches");
                let files = words::count(self.files.len() as u64, "file", "files");
                format!("{matches} in {files}")
            }
        };
        let searched = words::count(self.searched_files, "file", "files");
        let mut said = format!("{found} below {} ({searched} looked at)", self.path);
        if self.more {
            said.push_str(
                "; there is more: give a narrower path, glob or pattern, or more max_matches",
            );
        }
        if let Some(why) = &self.incomplete {
            let _ = write!(said, "; not everything was searched: {why}");
        }
        for file in &self.files {
            let end = if file.link { "  (link)" } else { "" };
            let _ = write!(said, "\n{}{end}", file.path);
            for line in &file.lines {
                let mark = if line.context { '-' } else { ':' };
                let _ = write!(said, "\n{:>6}{mark}\t{}", line.number, line.text);
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(arguments: serde_json::Value) -> SearchFiles {
        serde_json::from_value(arguments).unwrap()
    }

    #[test]
    fn a_name_is_meant_anywhere_and_a_path_from_the_top() {
        let matches = |glob: &str, path: &str| {
            let matcher = asked(serde_json::json!({"glob": glob})).glob().unwrap();
            matcher.unwrap().is_match(path)
        };
        assert!(matches("*.rs", "main.rs") && matches("*.rs", "src/a/b.rs"));
        assert!(matches("src/**/*.ts", "src/a/b.ts") && matches("src/**/*.ts", "src/b.ts"));
        assert!(!matches("src/*.ts", "src/a/b.ts") && !matches("src/*.ts", "lib/src/b.ts"));
        assert!(matches("*.{a,b}", "x.b") && matches("./src/*", "src/x"));
    }

    #[test]
    fn a_pattern_is_what_it_says() {
        let found = |arguments, line: &str| {
            let pattern = asked(arguments).pattern().unwrap().unwrap();
            pattern.is_match(line.as_bytes())
        };
        assert!(found(serde_json::json!({"pattern": "a.c"}), "abc"));
        let literal = serde_json::json!({"pattern": "a.c", "literal": true});
        assert!(!found(literal.clone(), "abc") && found(literal, "a.c"));
        let any_case = serde_json::json!({"pattern": "straße", "ignore_case": true});
        assert!(found(any_case, "STRAßE"));
        let wrong = asked(serde_json::json!({"pattern": "("}));
        assert!(matches!(wrong.pattern(), Err(Mishap::Pattern(_))));
    }
}
