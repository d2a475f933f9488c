//! The text form of paths and access, used in configuration files and on the command line.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::{Access, EntryPath, SpecialPath};

/// A text that is no path of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected an absolute path, a pattern, or one of :root, :minimal, :project_roots, :tmpdir, :slash_tmp"
)]
pub struct InvalidEntryPath;

const PROJECT_ROOTS: &str = ":project_roots";

impl FromStr for EntryPath {
    type Err = InvalidEntryPath;

    fn from_str(text: &str) -> Result<Self, InvalidEntryPath> {
        let special = |value| Ok(EntryPath::Special { value });
        match text {
            ":root" => return special(SpecialPath::Root),
            ":minimal" => return special(SpecialPath::Minimal),
            ":tmpdir" => return special(SpecialPath::Tmpdir),
            ":slash_tmp" => return special(SpecialPath::SlashTmp),
            PROJECT_ROOTS => return special(SpecialPath::project_roots()),
            "" => return Err(InvalidEntryPath),
            _ => {}
        }
        if let Some(rest) = text.strip_prefix(PROJECT_ROOTS) {
            let subpath = rest.strip_prefix('/').ok_or(InvalidEntryPath)?;
            return special(SpecialPath::below_project_roots(subpath));
        }
        if text.starts_with(':') {
            return Err(InvalidEntryPath);
        }
        let is_pattern = text.contains(['*', '?', '[', '{']);
        if text.starts_with('/') && !is_pattern {
            return Ok(EntryPath::Path { path: text.into() });
        }
        Ok(EntryPath::GlobPattern {
            pattern: text.to_owned(),
        })
    }
}

impl fmt::Display for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryPath::Path { path } => write!(f, "{}", path.display()),
            EntryPath::GlobPattern { pattern } => f.write_str(pattern),
            EntryPath::Special { value } => value.fmt(f),
        }
    }
}

impl fmt::Display for SpecialPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecialPath::Root => f.write_str(":root"),
            SpecialPath::Minimal => f.write_str(":minimal"),
            SpecialPath::Tmpdir => f.write_str(":tmpdir"),
            SpecialPath::SlashTmp => f.write_str(":slash_tmp"),
            SpecialPath::Unknown { path, .. } => f.write_str(path),
            SpecialPath::ProjectRoots { subpath } => match subpath.as_deref() {
                Some(subpath) if subpath != Path::new("") => {
                    write!(f, "{PROJECT_ROOTS}/{}", subpath.display())
                }
                _ => f.write_str(PROJECT_ROOTS),
            },
        }
    }
}

impl Access {
    /// The name in configuration files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Deny => "deny",
        }
    }

    /// The access with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Access> {
        let all = [Access::Read, Access::Write, Access::Deny];
        all.into_iter().find(|access| access.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displayed_paths_parse_to_the_same() {
        let special = |value| EntryPath::Special { value };
        let pattern = |text: &str| EntryPath::GlobPattern {
            pattern: text.to_owned(),
        };
        let data = EntryPath::Path {
            path: "/srv/data".into(),
        };
        let cases = [
            (":root", special(SpecialPath::Root)),
            (":minimal", special(SpecialPath::Minimal)),
            (":project_roots", special(SpecialPath::project_roots())),
            (
                ":project_roots/a/b",
                special(SpecialPath::below_project_roots("a/b")),
            ),
            (":tmpdir", special(SpecialPath::Tmpdir)),
            (":slash_tmp", special(SpecialPath::SlashTmp)),
            ("/srv/data", data),
            ("/srv/*.pem", pattern("/srv/*.pem")),
            ("secrets", pattern("secrets")),
            ("**/*.pem", pattern("**/*.pem")),
        ];
        for (text, path) in cases {
            assert_eq!(text.parse(), Ok(path.clone()));
            assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn unknown_names_are_rejected() {
        for text in ["", ":home", ":project_rootsx", ":"] {
            assert_eq!(text.parse::<EntryPath>(), Err(InvalidEntryPath), "{text}");
        }
    }
}
