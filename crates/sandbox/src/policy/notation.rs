//! How people write a place: in a configuration, on a command line.

use std::{fmt, path::PathBuf, str::FromStr};

use super::{Place, Special};
use crate::Access;

/// A text that is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected an absolute path, a pattern, or one of :root, :minimal, :project_roots, :tmpdir, :slash_tmp"
)]
pub struct NotAPlace;

const PROJECT_ROOTS: &str = ":project_roots";

impl FromStr for Place {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, NotAPlace> {
        let special = |special| Ok(Place::Special(special));
        match text {
            ":root" => return special(Special::Root),
            ":minimal" => return special(Special::Minimal),
            ":tmpdir" => return special(Special::Tmpdir),
            ":slash_tmp" => return special(Special::SlashTmp),
            PROJECT_ROOTS => {
                let below = PathBuf::new();
                return special(Special::ProjectRoots { below });
            }
            "" => return Err(NotAPlace),
            _ => {}
        }
        if let Some(rest) = text.strip_prefix(PROJECT_ROOTS) {
            let below = rest.strip_prefix('/').ok_or(NotAPlace)?;
            let below = PathBuf::from(below);
            return special(Special::ProjectRoots { below });
        }
        if text.starts_with(':') {
            return Err(NotAPlace);
        }
        let is_pattern = text.contains(['*', '?', '[', '{']);
        if text.starts_with('/') && !is_pattern {
            return Ok(Place::Path(text.into()));
        }
        Ok(Place::Pattern(text.to_owned()))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Path(path) => write!(f, "{}", path.display()),
            Place::Pattern(text) => f.write_str(text),
            Place::Special(Special::Root) => f.write_str(":root"),
            Place::Special(Special::Minimal) => f.write_str(":minimal"),
            Place::Special(Special::Tmpdir) => f.write_str(":tmpdir"),
            Place::Special(Special::SlashTmp) => f.write_str(":slash_tmp"),
            Place::Special(Special::Unknown(name)) => f.write_str(name),
            Place::Special(Special::ProjectRoots { below }) => {
                f.write_str(PROJECT_ROOTS)?;
                if below.as_os_str().is_empty() {
                    return Ok(());
                }
                write!(f, "/{}", below.display())
            }
        }
    }
}

impl Access {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Deny => "deny",
        }
    }

    /// What a word means.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Access> {
        let all = [Access::Read, Access::Write, Access::Deny];
        all.into_iter().find(|access| access.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let below = |below: &str| Special::ProjectRoots {
            below: below.into(),
        };
        let cases = [
            (":root", Place::Special(Special::Root)),
            (":minimal", Place::Special(Special::Minimal)),
            (":project_roots", Place::Special(below(""))),
            (":project_roots/a/b", Place::Special(below("a/b"))),
            (":tmpdir", Place::Special(Special::Tmpdir)),
            (":slash_tmp", Place::Special(Special::SlashTmp)),
            ("/srv/data", Place::Path("/srv/data".into())),
            ("/srv/*.pem", Place::Pattern("/srv/*.pem".into())),
            ("secrets", Place::Pattern("secrets".into())),
            ("**/*.pem", Place::Pattern("**/*.pem".into())),
        ];
        for (text, place) in cases {
            assert_eq!(text.parse(), Ok(place.clone()));
            assert_eq!(place.to_string(), text);
        }
        for text in ["", ":home", ":project_rootsx", ":"] {
            assert_eq!(text.parse::<Place>(), Err(NotAPlace), "{text}");
        }
    }
}
