//! Where the files are.

use std::{ffi::OsString, path::PathBuf};

const FILE: &str = "outpost/outpost.toml";
const SYSTEM_FOLDER: &str = "/etc";

/// The files that are read, whether or not they exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// The user's, unless there is no telling where that would be.
    pub(crate) user: Option<PathBuf>,
    /// The user's was named, so it has to be there.
    pub(crate) user_is_named: bool,
    pub(crate) system: PathBuf,
}

impl Places {
    /// The files of a user with this environment, who may have named another
    /// one than the usual.
    pub(crate) fn new(named: Option<PathBuf>, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name| {
            let value = variable(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let named = named.or_else(|| path("OUTPOST_CONFIG"));
        let user_is_named = named.is_some();
        let usual = || {
            path("XDG_CONFIG_HOME")
                .filter(|folder| folder.is_absolute())
                .or_else(|| path("HOME").map(|home| home.join(".config")))
                .filter(|folder| folder.is_absolute())
                .map(|folder| folder.join(FILE))
        };
        Places {
            user: named.or_else(usual),
            user_is_named,
            system: PathBuf::from(SYSTEM_FOLDER).join(FILE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(named: Option<&str>, variables: &[(&str, &str)]) -> (Option<PathBuf>, bool) {
        let places = Places::new(named.map(PathBuf::from), |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).into())
        });
        assert_eq!(places.system, PathBuf::from("/etc/outpost/outpost.toml"));
        (places.user, places.user_is_named)
    }

    #[test]
    fn the_users_file_is_where_the_user_says_or_where_it_is_usual() {
        let home = ("HOME", "/h");
        let usual = (Some("/h/.config/outpost/outpost.toml".into()), false);
        assert_eq!(user(None, &[home]), usual);
        assert_eq!(
            user(None, &[home, ("XDG_CONFIG_HOME", "/x")]),
            (Some("/x/outpost/outpost.toml".into()), false)
        );
        for nothing in ["", "relative"] {
            assert_eq!(user(None, &[home, ("XDG_CONFIG_HOME", nothing)]), usual);
        }
        assert_eq!(user(None, &[]), (None, false));
        let named = ("OUTPOST_CONFIG", "o.toml");
        assert_eq!(user(None, &[home, named]), (Some("o.toml".into()), true));
        assert_eq!(user(None, &[home, ("OUTPOST_CONFIG", "")]), usual);
        assert_eq!(
            user(Some("f.toml"), &[home, named]),
            (Some("f.toml".into()), true)
        );
    }
}
