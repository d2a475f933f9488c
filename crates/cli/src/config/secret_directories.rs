//! Directories that contain nothing but secret files of the server, which are hidden from sandboxed processes as a
//! whole.
//!
//! A mask over a file ends when the file is replaced: rename(2) detaches what is mounted over the old one in
//! other mount namespaces. A mask over its directory stays.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
};

/// The permissions of other users.
const OTHERS: u32 = 0o077;

/// Returns the directory of a file, if only its owner can use it, and it contains only `known` files and
/// predecessors and successors of theirs, such as `tokens.toml.1234` and `audit.log-20261119`. It is neither the
/// home directory nor the working directory, which get other files later.
pub(super) fn directory_of(file: &Path, known: &[PathBuf]) -> Option<PathBuf> {
    let directory = file.parent()?;
    let is_private = fs::metadata(directory).is_ok_and(|found| found.mode() & OTHERS == 0);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let current = std::env::current_dir().ok();
    let is_used = [home, current]
        .iter()
        .flatten()
        .any(|used| used.starts_with(directory));
    let entries = fs::read_dir(directory).ok();
    let entries = entries.filter(|_| is_private && !is_used)?;
    let names: Vec<&OsStr> = known
        .iter()
        .filter(|known| known.parent() == Some(directory))
        .filter_map(|known| known.file_name())
        .collect();
    for entry in entries {
        let name = entry.ok()?.file_name();
        let is_known = names.iter().any(|known| {
            let rest = name.as_bytes().strip_prefix(known.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || matches!(rest[0], b'.' | b'-'))
        });
        // Kubernetes mounts secrets as links through `..data`.
        if !is_known && !name.as_bytes().starts_with(b"..") {
            return None;
        }
    }
    Some(directory.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn directory_with_other_files_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path();
        fs::set_permissions(base, fs::Permissions::from_mode(0o700)).unwrap();
        let known = [base.join("tokens.toml"), base.join("key.pem")];
        let found = || directory_of(&known[0], &known);
        assert_eq!(found().as_deref(), Some(base), "an empty one");
        for name in [
            "tokens.toml",
            "tokens.toml.17",
            "key.pem",
            "key.pem-20261119",
            "..data",
        ] {
            fs::write(base.join(name), "").unwrap();
            assert_eq!(found().as_deref(), Some(base), "{name}");
        }
        for name in ["tokens.tomlx", ".bashrc", "src"] {
            fs::write(base.join(name), "").unwrap();
            assert_eq!(found(), None, "{name}");
            fs::remove_file(base.join(name)).unwrap();
        }
        assert_eq!(directory_of(&base.join("missing/key.pem"), &known), None);
        assert_eq!(directory_of(Path::new("/key.pem"), &known), None);
    }

    #[test]
    fn directory_that_others_can_use_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let known = [directory.path().join("tokens.toml")];
        for (mode, found) in [
            (0o700, true),
            (0o755, false),
            (0o1777, false),
            (0o500, true),
        ] {
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(directory_of(&known[0], &known).is_some(), found, "{mode:o}");
        }
    }
}
