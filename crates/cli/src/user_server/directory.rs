//! Runtime directory of the user's server: socket, log and lock.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use outpost_engine::sandbox::{Access, planning::OwnPath};
use tokio::time::{Instant, sleep};

/// Timeout for another command to start the server.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// Poll interval of the lock; flock has no timeout.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// The runtime directory. A user who can write to it could impersonate the server, so it has to
/// belong to this user alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RuntimeDirectory {
    path: PathBuf,
}

impl RuntimeDirectory {
    /// The directory of the current user.
    pub(super) fn of_user() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        RuntimeDirectory::in_runtime(std::env::var_os("XDG_RUNTIME_DIR"), uid)
    }

    /// In the runtime directory, or in /tmp if there is none.
    fn in_runtime(runtime_directory: Option<OsString>, uid: u32) -> Self {
        let runtime_directory = runtime_directory.map(PathBuf::from);
        let path = match runtime_directory.filter(|path| path.is_absolute()) {
            Some(path) => path.join("outpost"),
            None => PathBuf::from(format!("/tmp/outpost-{uid}")),
        };
        RuntimeDirectory { path }
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path.join("server.sock")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join("server.log")
    }

    /// The URL of the socket.
    pub(super) fn url(&self) -> anyhow::Result<String> {
        let socket = self.socket();
        let path = socket.to_str();
        let path = path.with_context(|| {
            format!(
                "cannot use {}: it is not valid UTF-8; set XDG_RUNTIME_DIR to another directory",
                socket.display()
            )
        })?;
        Ok(format!("unix://{path}"))
    }

    /// Returns whether it exists; fails if it can't be trusted.
    pub(super) fn exists(&self) -> anyhow::Result<bool> {
        match fs::symlink_metadata(&self.path) {
            Ok(metadata) => {
                let uid = rustix::process::geteuid().as_raw();
                check(
                    &self.path,
                    metadata.is_dir(),
                    metadata.uid(),
                    uid,
                    metadata.mode(),
                )?;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).with_context(|| self.cannot("inspect")),
        }
    }

    /// Creates it, if necessary.
    pub(super) fn create(&self) -> anyhow::Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| {
                    format!(
                        "{}; set XDG_RUNTIME_DIR to a directory of yours, or unset it",
                        self.cannot("create")
                    )
                });
            }
        }
        ensure!(self.exists()?, "{}: it was removed", self.cannot("use"));
        Ok(())
    }

    /// Locks the start of the server, until the file is dropped.
    pub(super) async fn lock(&self) -> anyhow::Result<File> {
        let path = self.path.join("server.lock");
        let open = private().create(true).truncate(false).open(&path);
        let file = open.with_context(|| format!("cannot open {}", path.display()))?;
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    sleep(LOCK_INTERVAL).await;
                }
                Err(TryLockError::WouldBlock) => bail!(
                    "cannot start the server: another command has been starting it for {LOCK_TIMEOUT:?}; \
                     see which process holds {}",
                    path.display()
                ),
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("cannot lock {}", path.display()));
                }
            }
        }
    }

    /// Creates a new log.
    pub(super) fn new_log(&self) -> anyhow::Result<File> {
        let path = self.log();
        let shown = path.display();
        // An exiting server may still write to the old file, so it is replaced, not truncated.
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot remove {shown}")),
        }
        let open = private().create_new(true).append(true).open(&path);
        open.with_context(|| format!("cannot write {shown}"))
    }

    fn cannot(&self, what: &str) -> String {
        format!("cannot {what} the directory {}", self.path.display())
    }
}

/// The path of the runtime directory.
pub(crate) fn runtime_directory() -> PathBuf {
    RuntimeDirectory::of_user().path
}

/// Returns the runtime directory as a path that sandboxed processes must not see: a process that can
/// write to it can pretend to be the user's server. Returns `None` if the directory would be in a
/// directory that only another user can enter.
pub(crate) fn own_path() -> Option<OwnPath> {
    let path = RuntimeDirectory::of_user().path;
    let above = fs::metadata(path.parent()?).ok()?;
    let is_ours = above.uid() == rustix::process::geteuid().as_raw();
    let is_shared = above.mode() & 0o002 != 0;
    (is_ours || is_shared).then_some(OwnPath {
        path,
        access: Access::Deny,
        creates: true,
        only_if_present: false,
    })
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// Checks that a directory belongs to this user alone.
fn check(path: &Path, is_folder: bool, owner: u32, uid: u32, mode: u32) -> anyhow::Result<()> {
    let shown = path.display();
    ensure!(
        is_folder,
        "cannot use {shown}: it is not a directory; remove it, or set XDG_RUNTIME_DIR to another directory"
    );
    ensure!(
        owner == uid,
        "cannot use the directory {shown}: it belongs to user id {owner} and not to {uid}; \
         set XDG_RUNTIME_DIR to a directory of yours"
    );
    let open = mode & 0o077;
    ensure!(
        open == 0,
        "cannot use the directory {shown}: other users have access (mode {:o}); \
         check its content, then run chmod 700",
        mode & 0o777
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_is_in_runtime_directory_or_tmp() {
        let path =
            |value: Option<&str>| RuntimeDirectory::in_runtime(value.map(OsString::from), 7).path;
        assert_eq!(path(Some("/run/user/7")), Path::new("/run/user/7/outpost"));
        for none in [None, Some(""), Some("relative")] {
            assert_eq!(path(none), Path::new("/tmp/outpost-7"), "{none:?}");
        }
    }

    #[test]
    fn only_a_private_directory_of_the_user_is_accepted() {
        let path = Path::new("/run/x");
        let checked_message = |is_folder, owner, mode| {
            let checked = check(path, is_folder, owner, 7, mode);
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(checked_message(true, 7, 0o40_700), Ok(()));
        assert_eq!(checked_message(true, 7, 0o40_500), Ok(()));
        assert!(
            checked_message(false, 7, 0o700)
                .unwrap_err()
                .contains("not a directory")
        );
        assert!(
            checked_message(true, 8, 0o700)
                .unwrap_err()
                .contains("user id 8")
        );
        for mode in [0o701, 0o710, 0o740, 0o1777] {
            let message = checked_message(true, 7, mode).unwrap_err();
            assert!(message.contains("other users have access"), "{message}");
        }
    }

    #[test]
    fn directory_is_created_private() {
        let around = tempfile::tempdir().unwrap();
        let directory = RuntimeDirectory::in_runtime(Some(around.path().into()), 0);
        assert!(!directory.exists().unwrap());
        directory.create().unwrap();
        directory.create().unwrap();
        let mode = fs::metadata(&directory.path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[tokio::test]
    async fn lock_is_exclusive() {
        let around = tempfile::tempdir().unwrap();
        let directory = RuntimeDirectory::in_runtime(Some(around.path().into()), 0);
        directory.create().unwrap();
        let first = directory.lock().await.unwrap();
        let second = tokio::time::timeout(LOCK_INTERVAL, directory.lock()).await;
        assert!(second.is_err(), "it is taken");
        drop(first);
        directory.lock().await.unwrap();
    }
}
