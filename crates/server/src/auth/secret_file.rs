//! Reads secret files, and files that decide whom to trust: tokens, keys and lists of them.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

/// Size of a secret file.
const MAX_BYTES: u64 = 1024 * 1024;

/// Error of reading a secret file.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// The path is relative, so it depends on the working directory.
    #[error("{0} must be an absolute path")]
    Relative(PathBuf),
    /// Other users could read the secret.
    #[error("{path} can be read by other users (mode {mode:04o}); run chmod 600 on it")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Other users could decide whom to trust.
    #[error("{path} can be changed by other users (mode {mode:04o}); run chmod go-w on it")]
    Writable {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Another user could replace it.
    #[error("{path} belongs to user {uid}; it must belong to the server's user or to root")]
    ForeignOwner {
        /// The file.
        path: PathBuf,
        /// The owner.
        uid: u32,
    },
    /// The path is a directory, a FIFO or a device.
    #[error("{0} is not a regular file")]
    NotAFile(PathBuf),
    /// The file is larger than any secret.
    #[error("{0} is larger than 1 MiB")]
    TooLarge(PathBuf),
    /// The OS rejected it.
    #[error("cannot read {path}: {os}")]
    Os {
        /// The file.
        path: PathBuf,
        /// The OS error.
        os: io::Error,
    },
}

/// Reads a file that only the server's user, or root, can read and replace.
pub fn read_secret_file(path: &Path) -> Result<Vec<u8>, SecretFileError> {
    let (file, mode) = open(path)?;
    if mode & 0o077 != 0 {
        return Err(SecretFileError::Exposed {
            path: path.to_owned(),
            mode,
        });
    }
    read(path, file)
}

/// Reads a file that anyone may read, but only the server's user, or root, can replace.
pub(crate) fn read_trusted_file(path: &Path) -> Result<Vec<u8>, SecretFileError> {
    let (file, mode) = open(path)?;
    if mode & 0o022 != 0 {
        return Err(SecretFileError::Writable {
            path: path.to_owned(),
            mode,
        });
    }
    read(path, file)
}

/// Opens a regular file of the server's user or of root. Returns it with its permission bits.
fn open(path: &Path) -> Result<(File, u32), SecretFileError> {
    let path_buf = || path.to_owned();
    if !path.is_absolute() {
        return Err(SecretFileError::Relative(path_buf()));
    }
    let failed = |os| SecretFileError::Os {
        path: path_buf(),
        os,
    };
    // Without NONBLOCK, opening a FIFO would block.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(SecretFileError::NotAFile(path_buf()));
    }
    let own = rustix::process::geteuid().as_raw();
    if ![0, own].contains(&metadata.uid()) {
        let uid = metadata.uid();
        return Err(SecretFileError::ForeignOwner {
            path: path_buf(),
            uid,
        });
    }
    Ok((file, metadata.mode() & 0o7777))
}

fn read(path: &Path, file: File) -> Result<Vec<u8>, SecretFileError> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|os| SecretFileError::Os {
            path: path.to_owned(),
            os,
        })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(SecretFileError::TooLarge(path.to_owned()));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn file_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        fs::write(&path, "x").unwrap();
        for mode in [0o644, 0o640, 0o620, 0o601] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let refused = read_secret_file(&path).unwrap_err();
            assert!(refused.to_string().contains("chmod 600"), "{refused}");
        }
        for mode in [0o600, 0o400] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_secret_file(&path).unwrap(), b"x");
        }
    }

    #[test]
    fn trusted_file_may_be_read_but_not_changed_by_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        fs::write(&path, "x").unwrap();
        for mode in [0o664, 0o646, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let refused = read_trusted_file(&path).unwrap_err();
            assert!(refused.to_string().contains("chmod go-w"), "{refused}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(read_trusted_file(&path).unwrap(), b"x");
    }

    #[test]
    fn other_kinds_of_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).unwrap();
        for path in [dir.path(), &fifo] {
            let refused = read_secret_file(path).unwrap_err();
            assert!(matches!(refused, SecretFileError::NotAFile(_)), "{refused}");
        }
        let refused = read_secret_file(Path::new("relative")).unwrap_err();
        assert!(matches!(refused, SecretFileError::Relative(_)), "{refused}");
    }
}
