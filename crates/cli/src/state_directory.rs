//! Directory of what outlives the user's server: keys of detached work, and the record of what was granted to
//! sandboxed processes.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::user_server;

/// The directory of the current user, if the environment names one.
pub(crate) fn of_user() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name);
    locate(variable("XDG_STATE_HOME"), variable("HOME"))
}

/// The directory for the sandbox's record of granted directories. A user without a home directory, such as a
/// service, has it in the runtime directory.
pub(crate) fn grant_record() -> PathBuf {
    let is_own_home = |home: &OsStr| {
        let owner = fs::metadata(Path::new(home)).map(|home| home.uid());
        owner.is_ok_and(|owner| owner == rustix::process::geteuid().as_raw())
    };
    let home = std::env::var_os("HOME").filter(|home| is_own_home(home));
    let state = locate(std::env::var_os("XDG_STATE_HOME"), home);
    let directory = state.unwrap_or_else(user_server::runtime_directory);
    directory.join("sandbox")
}

/// See <https://specifications.freedesktop.org/basedir-spec/>.
fn locate(state: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|p| p.is_absolute());
    let state = absolute(state).or_else(|| Some(absolute(home)?.join(".local/state")))?;
    Some(state.join("outpost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_is_in_state_home_or_home() {
        let path = |state: Option<&str>, home: Option<&str>| {
            locate(state.map(Into::into), home.map(Into::into))
        };
        let below = |path: &str| Some(Path::new(path).join("outpost"));
        assert_eq!(path(Some("/s"), Some("/h")), below("/s"));
        assert_eq!(path(Some("relative"), Some("/h")), below("/h/.local/state"));
        assert_eq!(path(None, Some("/h")), below("/h/.local/state"));
        assert_eq!(path(None, None), None);
    }
}
