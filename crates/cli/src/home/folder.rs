//! Where the server of a user lives.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use tokio::time::{Instant, sleep};

/// How long somebody else may be busy starting the server.
const LOCK_WITHIN: Duration = Duration::from_secs(30);
/// How often the lock is tried: nothing tells when it is free.
const LOCK_EVERY: Duration = Duration::from_millis(20);

/// The folder of the user's server. Whoever can write to it could pose as the
/// server, so it has to be ours alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folder {
    path: PathBuf,
}

/// Held while the server is being started; let go by dropping it.
pub(super) struct Lock {
    _file: File,
}

impl Folder {
    /// The folder of the user who runs this program.
    pub(super) fn of_user() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        Folder::of(std::env::var_os("XDG_RUNTIME_DIR"), uid)
    }

    /// In the runtime directory, or where there is none in one for all.
    fn of(runtime_directory: Option<OsString>, uid: u32) -> Self {
        let runtime_directory = runtime_directory.map(PathBuf::from);
        let path = match runtime_directory.filter(|path| path.is_absolute()) {
            Some(path) => path.join("outpost"),
            None => PathBuf::from(format!("/tmp/outpost-{uid}")),
        };
        Folder { path }
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path.join("server.sock")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join("server.log")
    }

    /// The address of the socket.
    pub(super) fn url(&self) -> anyhow::Result<String> {
        let socket = self.socket();
        let path = socket.to_str();
        let path = path.with_context(|| {
            format!(
                "cannot use {}: it is not valid UTF-8; set XDG_RUNTIME_DIR to another folder",
                socket.display()
            )
        })?;
        Ok(format!("unix://{path}"))
    }

    /// Whether it is there; fails if it is and can't be trusted.
    pub(super) fn is_there(&self) -> anyhow::Result<bool> {
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
            Err(error) => Err(error).with_context(|| self.tried("look at")),
        }
    }

    /// Makes it, unless it is there already.
    pub(super) fn make(&self) -> anyhow::Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| {
                    format!(
                        "{}; XDG_RUNTIME_DIR must be a folder of yours, or unset",
                        self.tried("make")
                    )
                });
            }
        }
        ensure!(self.is_there()?, "{}: it is gone", self.tried("use"));
        Ok(())
    }

    /// Keeps others from starting the server too.
    pub(super) async fn lock(&self) -> anyhow::Result<Lock> {
        let path = self.path.join("server.lock");
        let open = private().create(true).truncate(false).open(&path);
        let file = open.with_context(|| format!("cannot open {}", path.display()))?;
        let deadline = Instant::now() + LOCK_WITHIN;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    sleep(LOCK_EVERY).await;
                }
                Err(TryLockError::WouldBlock) => bail!(
                    "cannot start the server: another command has been starting it for {LOCK_WITHIN:?}; \
                     see what holds {}",
                    path.display()
                ),
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("cannot lock {}", path.display()));
                }
            }
        }
    }

    /// The log, empty again: a server writes behind what is in there.
    pub(super) fn new_log(&self) -> anyhow::Result<File> {
        let path = self.log();
        let shown = path.display();
        // It may be held by a server that is about to leave, so it is another
        // file rather than the same one made short.
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot remove {shown}")),
        }
        let open = private().create_new(true).append(true).open(&path);
        open.with_context(|| format!("cannot write {shown}"))
    }

    fn tried(&self, what: &str) -> String {
        format!("cannot {what} the folder {}", self.path.display())
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// Whether a folder is ours alone.
fn check(path: &Path, is_folder: bool, owner: u32, uid: u32, mode: u32) -> anyhow::Result<()> {
    let shown = path.display();
    ensure!(
        is_folder,
        "cannot use {shown}: it is not a folder; remove it, or set XDG_RUNTIME_DIR to another place"
    );
    ensure!(
        owner == uid,
        "cannot use the folder {shown}: it belongs to user id {owner} and not to {uid}; \
         set XDG_RUNTIME_DIR to a folder of yours"
    );
    let open = mode & 0o077;
    ensure!(
        open == 0,
        "cannot use the folder {shown}: it is open to others (mode {:o}); \
         see what is in it, then close it with chmod 700",
        mode & 0o777
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_runtime_directory_or_below_tmp() {
        let of = |value: Option<&str>| Folder::of(value.map(OsString::from), 7).path;
        assert_eq!(of(Some("/run/user/7")), Path::new("/run/user/7/outpost"));
        for none in [None, Some(""), Some("relative")] {
            assert_eq!(of(none), Path::new("/tmp/outpost-7"), "{none:?}");
        }
    }

    #[test]
    fn only_a_folder_of_ours_that_is_closed_to_others_will_do() {
        let path = Path::new("/run/x");
        let said = |is_folder, owner, mode| {
            let checked = check(path, is_folder, owner, 7, mode);
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(said(true, 7, 0o40_700), Ok(()));
        assert_eq!(said(true, 7, 0o40_500), Ok(()));
        assert!(said(false, 7, 0o700).unwrap_err().contains("not a folder"));
        assert!(said(true, 8, 0o700).unwrap_err().contains("user id 8"));
        for mode in [0o701, 0o710, 0o740, 0o1777] {
            let words = said(true, 7, mode).unwrap_err();
            assert!(words.contains("open to others"), "{words}");
        }
    }

    #[test]
    fn the_folder_is_made_closed_and_kept() {
        let around = tempfile::tempdir().unwrap();
        let folder = Folder::of(Some(around.path().into()), 0);
        assert!(!folder.is_there().unwrap());
        folder.make().unwrap();
        folder.make().unwrap();
        let mode = fs::metadata(&folder.path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[tokio::test]
    async fn one_has_the_lock_at_a_time() {
        let around = tempfile::tempdir().unwrap();
        let folder = Folder::of(Some(around.path().into()), 0);
        folder.make().unwrap();
        let first = folder.lock().await.unwrap();
        let second = tokio::time::timeout(LOCK_EVERY, folder.lock()).await;
        assert!(second.is_err(), "it is taken");
        drop(first);
        folder.lock().await.unwrap();
    }
}
