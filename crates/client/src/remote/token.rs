//! Bearer tokens: where they come from, and how they are kept out of output.

use std::{
    fmt,
    fs::File,
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::OFlags;

/// Limit for a secret file. Signed tokens and keys have a few kilobytes.
const MAX_BYTES: u64 = 64 * 1024;

/// A bearer token that identifies the client to a server. `Debug` doesn't show it.
///
/// The token is sent only over `wss://`, to a unix socket or to a loopback address.
#[derive(Clone)]
pub struct BearerToken(Source);

/// The source of a token: text, or a file that is read at each use.
#[derive(Clone)]
enum Source {
    Fixed(Arc<str>),
    File(PathBuf),
}

/// Why a token or a secret file can't be used. No message contains a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The file can't be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Other users can read or change the file.
    #[error(
        "cannot use {path}: other users have access (mode {mode:o}); run chmod 600 {path}",
        path = .path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// The permission bits of the file.
        mode: u32,
    },
    /// Another user can replace the file.
    #[error(
        "cannot use {}: it belongs to user {uid}; it must belong to you or to root", .path.display()
    )]
    ForeignOwner {
        /// The file.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// The file is empty, too large or no text.
    #[error("cannot use {}: expected {expected}", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The expected content.
        expected: &'static str,
    },
    /// The token has characters that can't be sent in a header.
    #[error("cannot use the token: expected visible ASCII characters without spaces")]
    Characters,
}

impl BearerToken {
    /// Uses this token for every connection.
    pub fn new(token: &str) -> Result<Self, SecretError> {
        let token = token.trim();
        if is_sendable(token) {
            Ok(BearerToken(Source::Fixed(token.into())))
        } else {
            Err(SecretError::Characters)
        }
    }

    /// Reads the token from a file, now and again for every connection, so that a replaced token is
    /// used as soon as the old one has expired. Only its owner may have access to the file.
    pub fn from_file(path: impl Into<PathBuf>) -> Result<Self, SecretError> {
        let token = BearerToken(Source::File(path.into()));
        token.read()?;
        Ok(token)
    }

    /// Whether the token is read from a file.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.0, Source::File(_))
    }

    /// Returns the current token.
    pub(crate) fn read(&self) -> Result<Arc<str>, SecretError> {
        let path = match &self.0 {
            Source::Fixed(token) => return Ok(Arc::clone(token)),
            Source::File(path) => path,
        };
        let content = read_private_file(path)?;
        let text = str::from_utf8(&content).unwrap_or_default().trim();
        if is_sendable(text) {
            Ok(text.into())
        } else {
            Err(SecretError::Content {
                path: path.clone(),
                expected: "one token of visible ASCII characters",
            })
        }
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Fixed(_) => f.write_str("BearerToken(…)"),
            Source::File(path) => f.debug_tuple("BearerToken").field(path).finish(),
        }
    }
}

/// Returns whether a token fits on a header line.
fn is_sendable(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Reads a file with a secret. Fails if other users have access to it.
pub(crate) fn read_private_file(path: &Path) -> Result<Vec<u8>, SecretError> {
    let read = |source| SecretError::Read {
        path: path.to_owned(),
        source,
    };
    let expected = |expected| SecretError::Content {
        path: path.to_owned(),
        expected,
    };
    // Without O_NONBLOCK, opening a FIFO would wait for a writer.
    let file = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(read)?;
    let metadata = file.metadata().map_err(read)?;
    if !metadata.is_file() {
        return Err(expected("a regular file"));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(SecretError::Exposed {
            path: path.to_owned(),
            mode,
        });
    }
    let (uid, own) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if ![0, own].contains(&uid) {
        return Err(SecretError::ForeignOwner {
            path: path.to_owned(),
            uid,
        });
    }
    let mut content = Vec::new();
    let mut bounded = file.take(MAX_BYTES + 1);
    bounded.read_to_end(&mut content).map_err(read)?;
    match content.len() as u64 {
        0 => Err(expected("a file that is not empty")),
        1..=MAX_BYTES => Ok(content),
        _ => Err(expected("at most 64 KiB")),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    const SECRET: &str = "s3cret-token";

    fn file(mode: u32, content: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (directory, path)
    }

    #[test]
    fn token_is_not_shown() {
        let token = BearerToken::new(&format!("{SECRET}\n")).unwrap();
        assert_eq!(&*token.read().unwrap(), SECRET);
        let options = crate::RemoteOptions::default().token(token);
        let shown = format!("{options:?}");
        assert!(shown.contains("BearerToken(…)") && !shown.contains(SECRET));
        for wrong in ["", "a b", "a\r\nEvil: 1", "ä"] {
            let error = BearerToken::new(wrong).unwrap_err().to_string();
            assert!(error.contains("visible ASCII"), "{error}");
        }
    }

    #[test]
    fn file_is_read_again_each_time() {
        let (_directory, path) = file(0o600, "first\n");
        let token = BearerToken::from_file(&path).unwrap();
        fs::write(&path, SECRET).unwrap();
        assert_eq!(&*token.read().unwrap(), SECRET);
        fs::write(&path, format!("{SECRET} {SECRET}")).unwrap();
        let error = token.read().unwrap_err().to_string();
        assert!(
            error.contains("one token") && !error.contains(SECRET),
            "{error}"
        );
    }

    #[test]
    fn file_that_others_can_read_is_refused() {
        for mode in [0o640, 0o604, 0o644, 0o620] {
            let (_directory, path) = file(mode, SECRET);
            let error = BearerToken::from_file(&path).unwrap_err().to_string();
            let remedy = format!("chmod 600 {}", path.display());
            assert!(
                error.contains(&remedy) && error.contains(&format!("mode {mode:o}")),
                "{error}"
            );
        }
        let (_directory, path) = file(0o600, "");
        assert!(BearerToken::from_file(&path).is_err());
        assert!(BearerToken::from_file("/dev/null").is_err());
        assert!(BearerToken::from_file("/").is_err());
    }
}
