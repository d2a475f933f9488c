//! Directories that contain nothing but files of authentication, which are hidden from sandboxed processes as a
//! whole.
//!
//! A mask over a file ends when the file is replaced: rename(2) detaches what is mounted over the old one in
//! other mount namespaces. A mask over its directory stays.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

/// Returns the directory of a file, if it contains only `known` files, and predecessors and successors of
/// theirs, such as `tokens.toml.1234`. It is neither the home directory nor the working directory, which get
/// other files later.
pub(super) fn directory_of(file: &Path, known: &[PathBuf]) -> Option<PathBuf> {
    let directory = file.parent()?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let current = std::env::current_dir().ok();
    let is_used = [home, current]
        .iter()
        .flatten()
        .any(|used| used.starts_with(directory));
    let entries = fs::read_dir(directory).ok().filter(|_| !is_used)?;
    let names: Vec<&OsStr> = known
        .iter()
        .filter(|known| known.parent() == Some(directory))
        .filter_map(|known| known.file_name())
        .collect();
    for entry in entries {
        let name = entry.ok()?.file_name();
        let is_known = names.iter().any(|known| {
            let rest = name.as_bytes().strip_prefix(known.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'.')
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
    use super::*;

    #[test]
    fn directory_with_other_files_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path();
        let known = [base.join("tokens.toml"), base.join("key.pem")];
        let found = || directory_of(&known[0], &known);
        assert_eq!(found().as_deref(), Some(base), "an empty one");
        for name in ["tokens.toml", "tokens.toml.17", "key.pem", "..data"] {
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
}
