//! Keeps file operations away from the secrets of this program, such as the key that signs tokens.
//!
//! A file is judged after it was opened, like those in `/proc` (`procfs`). So neither links nor other names
//! of a file lead around the check.

use std::path::PathBuf;
use std::sync::RwLock;

use rustix::fs::{FileType, Stat, stat};
use rustix::io::Errno;

use crate::FilesError;
use crate::resolve::{Identity, file_type};

/// Of the whole process, like its files in `/proc`.
static SECRETS: RwLock<Vec<PathBuf>> = RwLock::new(Vec::new());

/// Has all operations that this process performs reject these files. The paths are resolved anew for each
/// operation, because the files may be replaced.
pub fn protect(secrets: impl IntoIterator<Item = PathBuf>) {
    // A panic of another thread leaves a whole list.
    let mut protected = SECRETS
        .write()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    protected.extend(secrets);
}

/// Fails if this file is a secret.
pub(crate) fn check(file: impl FnOnce() -> Result<Stat, Errno>) -> Result<(), FilesError> {
    let secrets = SECRETS
        .read()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if secrets.is_empty() {
        return Ok(());
    }
    let found = file()?;
    if file_type(&found) != FileType::RegularFile {
        return Ok(());
    }
    let is_it = |secret: &PathBuf| {
        stat(secret).is_ok_and(|secret| Identity::from(&secret) == Identity::from(&found))
    };
    match secrets.iter().any(is_it) {
        true => Err(FilesError::Secret),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use outpost_types::{FileErrorKind, FileOp, FsCopyParams, PathUri, Symlinks};

    use super::*;
    use crate::{FileExecutor, Files};

    fn uri(path: &Path) -> PathUri {
        PathUri::from_path(path)
    }

    #[test]
    fn secrets_are_rejected_by_whatever_path() {
        let folder = tempfile::tempdir().unwrap();
        let [secret, link, hard_link, other] =
            ["secret", "link", "hard_link", "other"].map(|name| folder.path().join(name));
        fs::write(&secret, "s3cret").unwrap();
        fs::write(&other, "public").unwrap();
        symlink(&secret, &link).unwrap();
        fs::hard_link(&secret, &hard_link).unwrap();
        protect([secret.clone()]);
        let executor = || FileExecutor::in_process(Files::default());
        for path in [&secret, &link, &hard_link] {
            let path = uri(path);
            let rejected = [
                executor().read(&path, Symlinks::Follow).map(drop),
                executor().write(&path, b"mine", Symlinks::Follow),
                executor().replace(&path).map(drop),
                executor().create_stream(&path).map(drop),
            ];
            for outcome in rejected {
                assert_eq!(outcome.unwrap_err().kind(), FileErrorKind::Denied, "{path}");
            }
        }
        let copy = |source: &Path, destination: &str, recursive| {
            executor().perform(FileOp::Copy(FsCopyParams {
                source_path: uri(source),
                destination_path: uri(&folder.path().join(destination)),
                recursive,
            }))
        };
        copy(&secret, "copy", false).unwrap_err();
        copy(folder.path(), "../copied-secrets", true).unwrap_err();
        copy(&other, "copy", false).unwrap();
        assert_eq!(
            executor().read(&uri(&other), Symlinks::Follow).unwrap(),
            b"public"
        );
        // A file that takes its place is the secret then.
        fs::rename(&other, &secret).unwrap();
        let replaced = executor().read(&uri(&secret), Symlinks::Follow);
        assert_eq!(replaced.unwrap_err().kind(), FileErrorKind::Denied);
    }
}
