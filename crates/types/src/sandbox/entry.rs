//! Entries of a policy: a path and the access to it, with their text form in configuration files and
//! on the command line.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PathUri;
use crate::optional_member::object;
use crate::path_uri::as_uri;

/// Sets the access to a path and everything below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FileSystemEntry")]
pub struct Entry {
    /// The path.
    #[serde(deserialize_with = "object")]
    pub path: EntryPath,
    /// The access to it.
    pub access: Access,
    /// Handling of a path that does not exist; absent makes it an error if access can't be granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_path_behavior: Option<MissingPathBehavior>,
}

impl Entry {
    /// An entry for a path.
    #[must_use]
    pub fn path(path: impl Into<PathBuf>, access: Access) -> Self {
        let path = path.into();
        Entry::new(EntryPath::Path { path }, access)
    }

    /// An entry for a path that differs between hosts.
    #[must_use]
    pub fn special(value: SpecialPath, access: Access) -> Self {
        Entry::new(EntryPath::Special { value }, access)
    }

    /// An entry for all paths that match a pattern.
    #[must_use]
    pub fn pattern(pattern: impl Into<String>, access: Access) -> Self {
        let pattern = pattern.into();
        Entry::new(EntryPath::GlobPattern { pattern }, access)
    }

    /// An entry for any kind of path.
    #[must_use]
    pub fn new(path: EntryPath, access: Access) -> Self {
        Entry {
            path,
            access,
            missing_path_behavior: None,
        }
    }

    /// Ignores the entry if its path does not exist.
    #[must_use]
    pub fn skip_missing(mut self) -> Self {
        self.missing_path_behavior = Some(MissingPathBehavior::Skip);
        self
    }
}

/// The path of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "type", rename_all = "snake_case")]
#[schemars(rename = "FileSystemPath")]
pub enum EntryPath {
    /// An absolute path.
    Path {
        /// The path, a `file:` URI on the wire.
        #[serde(with = "as_uri")]
        #[schemars(with = "PathUri")]
        path: PathBuf,
    },
    /// A path that differs between hosts.
    Special {
        /// The meaning of the path.
        #[serde(deserialize_with = "object")]
        value: SpecialPath,
    },
    /// All paths that match a pattern. Such entries can only deny.
    GlobPattern {
        /// Absolute, relative to the policy's `cwd`, or prefixed with `codex-project-roots://`.
        pattern: String,
    },
}

crate::tagged_enum!(EntryPath, "type");

/// A path that differs between hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
pub enum SpecialPath {
    /// The root of the file system.
    Root,
    /// The files that a dynamically linked program needs to run.
    Minimal,
    /// Each of the workspace roots.
    #[serde(alias = "current_working_directory")]
    ProjectRoots {
        /// A relative path below each of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        subpath: Option<PathBuf>,
    },
    /// `$TMPDIR` of the child.
    Tmpdir,
    /// `/tmp`.
    SlashTmp,
    /// A name that the client does not know either. The entry is ignored with a warning.
    Unknown {
        /// The name.
        path: String,
        /// A relative path below it.
        #[serde(skip_serializing_if = "Option::is_none")]
        subpath: Option<PathBuf>,
    },
}

crate::tagged_enum!(SpecialPath, "kind");

impl SpecialPath {
    /// The workspace roots themselves.
    #[must_use]
    pub fn project_roots() -> Self {
        SpecialPath::ProjectRoots { subpath: None }
    }

    /// A relative path below each of the workspace roots.
    #[must_use]
    pub fn below_project_roots(subpath: impl Into<PathBuf>) -> Self {
        let subpath = Some(subpath.into()).filter(|subpath| !subpath.as_os_str().is_empty());
        SpecialPath::ProjectRoots { subpath }
    }
}

/// The access to a path and everything below it. Ordered by precedence among entries for one path.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(remote = "Self", rename_all = "snake_case")]
#[schemars(rename = "FileSystemAccess")]
pub enum Access {
    /// Read.
    Read,
    /// Read and write.
    Write,
    /// No access. `none` is the old spelling.
    #[serde(alias = "none")]
    Deny,
}

crate::string_enum!(Access);

/// Handling of an entry whose path does not exist.
///
/// It applies to granted access only. A path that is denied or read-only can't be created in
/// either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "snake_case")]
pub enum MissingPathBehavior {
    /// Ignores the entry.
    Skip,
}

crate::string_enum!(MissingPathBehavior);

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
