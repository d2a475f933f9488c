//! The record of directories that were ever granted for writing, in a file that all sandboxes of a user
//! share.
//!
//! A process may have planted symbolic links in these directories, so the record must outlive the server
//! that started the process. Each version of the file replaces the one before, under a lock on its
//! directory, and is on disk before the process starts. A file that can't be used is an error: without it,
//! planted links can't be distinguished from other links.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::planning::{GrantedRoots, OwnPath};
use crate::{Access, Plan};

const FILE: &str = "granted";
const NEW_FILE: &str = "granted.new";
/// The start of a file; the number of directories follows.
const HEADER: &str = "outpost granted directories 1 ";
/// The largest file that is read. The limits of [`GrantedRoots`] are far below.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// How long another process may hold the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The poll interval of the lock; flock(2) has no timeout.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// The reason why the record of granted directories can't be used.
#[derive(Debug, thiserror::Error)]
pub enum GrantRecordError {
    /// The content isn't a record.
    #[error(
        "the record of directories granted to sandboxed processes, {}, is damaged, so links that they \
         planted can't be recognized; remove the file, after a look at the links in your workspaces",
        .0.display()
    )]
    Damaged(PathBuf),
    /// Other users have access.
    #[error(
        "cannot use {}: it must belong to user id {uid}, without access for others; \
         check its content, then correct its owner and mode, or remove it",
        path.display()
    )]
    NotPrivate {
        /// The file or directory.
        path: PathBuf,
        /// The id of this user.
        uid: u32,
    },
    /// Another process holds the lock.
    #[error(
        "cannot record granted directories: another process has locked {} for {LOCK_TIMEOUT:?}; \
         see which one it is with `fuser {}`",
        .0.display(), .0.display()
    )]
    Locked(PathBuf),
    /// A system call failed.
    #[error(
        "cannot {operation} the record of granted directories in {}: {error}; \
         set XDG_STATE_HOME to a directory of yours",
        directory.display()
    )]
    Os {
        /// The operation that failed: a verb.
        operation: &'static str,
        /// The directory of the record.
        directory: PathBuf,
        /// The error.
        error: io::Error,
    },
}

/// The record. No lock is held while it accesses files.
#[derive(Debug)]
pub(super) struct GrantRecord {
    /// Where it is stored; in memory only without one.
    directory: Option<PathBuf>,
    known: Mutex<CachedRecord>,
}

/// The last known content, from the file and from the grants of this process.
#[derive(Debug, Default)]
struct CachedRecord {
    granted: Arc<GrantedRoots>,
    /// The version of the file that has all of it, if one has.
    stored: Option<Version>,
}

/// The version of a file. Each one is a new file, with another inode or change time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    size: u64,
    change_time: (i64, i64),
}

impl GrantRecord {
    /// Creates a record in a directory, which need not exist, or in memory.
    pub(super) fn new(directory: Option<PathBuf>) -> Self {
        GrantRecord {
            directory,
            known: Mutex::default(),
        }
    }

    /// Returns its directory, which sandboxed processes must not see: a process that can open it can
    /// lock it.
    pub(super) fn own_path(&self) -> Option<OwnPath> {
        let path = self.directory.clone()?;
        Some(OwnPath {
            path,
            access: Access::Deny,
            creates: true,
            only_if_present: false,
        })
    }

    /// Returns all granted directories. Blocks on the file system.
    pub(super) fn load(&self) -> Result<Arc<GrantedRoots>, GrantRecordError> {
        if let Some(directory) = &self.directory
            && let Some(opened) = Directory::open(directory)?
        {
            self.read(&opened)?;
        }
        Ok(Arc::clone(&self.known.lock().granted))
    }

    /// Records what a plan makes writable. Blocks on the file system.
    pub(super) fn record(&self, plan: &Plan, now: SystemTime) -> Result<(), GrantRecordError> {
        let Some(directory) = &self.directory else {
            Arc::make_mut(&mut self.known.lock().granted).record(plan, now);
            return Ok(());
        };
        if !GrantedRoots::default().record(plan, now) {
            // Nothing is writable.
            return Ok(());
        }
        let opened = Directory::create(directory)?;
        self.read(&opened)?;
        if self.insert(plan, now) {
            return Ok(());
        }
        opened.lock()?;
        self.read(&opened)?;
        self.insert(plan, now);
        let granted = Arc::clone(&self.known.lock().granted);
        let version = opened.write(&granted)?;
        let mut known = self.known.lock();
        // Otherwise another thread has inserted more, and stores it itself.
        if known.granted == granted {
            known.stored = Some(version);
        }
        Ok(())
    }

    /// Adds the content of the file to what is known, if this version of it is new.
    fn read(&self, directory: &Directory<'_>) -> Result<(), GrantRecordError> {
        let Some((mut file, version)) = directory.file()? else {
            self.known.lock().stored = None;
            return Ok(());
        };
        if self.known.lock().stored == Some(version) {
            return Ok(());
        }
        let stored = directory.decode(&mut file)?;
        let mut known = self.known.lock();
        let granted = Arc::make_mut(&mut known.granted);
        for (root, time) in stored.iter() {
            granted.insert(root, time);
        }
        let is_complete = *granted == stored;
        known.stored = is_complete.then_some(version);
        Ok(())
    }

    /// Adds what a plan makes writable to what is known. Returns whether a file has all of it.
    fn insert(&self, plan: &Plan, now: SystemTime) -> bool {
        let mut known = self.known.lock();
        if Arc::make_mut(&mut known.granted).record(plan, now) {
            known.stored = None;
        }
        known.stored.is_some()
    }
}

/// The open directory of a record.
struct Directory<'a> {
    path: &'a Path,
    opened: File,
}

impl<'a> Directory<'a> {
    /// Opens the directory, if it exists.
    fn open(path: &'a Path) -> Result<Option<Self>, GrantRecordError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(opened) => File::from(opened),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(failed(path, "open", errno)),
        };
        check_private(path, &opened, path)?;
        // A user who can write the parent directory can replace this directory.
        if let Some(above) = path.parent() {
            let above = std::fs::metadata(above);
            let above = above.map_err(|error| failed(path, "inspect", error))?;
            let uid = rustix::process::geteuid().as_raw();
            if above.uid() != uid || above.mode() & 0o022 != 0 {
                let path = path.to_owned();
                return Err(GrantRecordError::NotPrivate { path, uid });
            }
        }
        Ok(Some(Directory { path, opened }))
    }

    fn create(path: &'a Path) -> Result<Self, GrantRecordError> {
        if let Some(directory) = Self::open(path)? {
            return Ok(directory);
        }
        let created = DirBuilder::new().recursive(true).mode(0o700).create(path);
        created.map_err(|error| failed(path, "create", error))?;
        Self::open(path)?.ok_or_else(|| failed(path, "create", Errno::NOENT))
    }

    /// Opens the file, if it exists.
    fn file(&self) -> Result<Option<(File, Version)>, GrantRecordError> {
        // Doesn't wait for the other end of a FIFO.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.opened, FILE, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(failed(self.path, "open", errno)),
        };
        check_private(self.path, &file, &self.path.join(FILE))?;
        let version = version(&file).map_err(|error| failed(self.path, "read", error))?;
        Ok(Some((file, version)))
    }

    fn decode(&self, file: &mut File) -> Result<GrantedRoots, GrantRecordError> {
        let mut bytes = Vec::new();
        let read = file.take(MAX_FILE_BYTES).read_to_end(&mut bytes);
        read.map_err(|error| failed(self.path, "read", error))?;
        decode(&bytes).ok_or_else(|| GrantRecordError::Damaged(self.path.join(FILE)))
    }

    /// Waits for the lock, which is held until the directory is closed.
    fn lock(&self) -> Result<(), GrantRecordError> {
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            match rustix::fs::flock(&self.opened, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(Errno::WOULDBLOCK) if Instant::now() < deadline => {
                    std::thread::sleep(LOCK_INTERVAL);
                }
                Err(Errno::WOULDBLOCK) => {
                    return Err(GrantRecordError::Locked(self.path.to_owned()));
                }
                Err(errno) => return Err(failed(self.path, "lock", errno)),
            }
        }
    }

    /// Replaces the file. The caller has the lock.
    fn write(&self, granted: &GrantedRoots) -> Result<Version, GrantRecordError> {
        let write = || {
            match rustix::fs::unlinkat(&self.opened, NEW_FILE, rustix::fs::AtFlags::empty()) {
                // The rest of a process that was killed.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR;
            let mut file = File::from(rustix::fs::openat(&self.opened, NEW_FILE, flags, mode)?);
            file.write_all(&encode(granted))?;
            // Otherwise a crash of the host may leave an empty file in place of the earlier one.
            file.sync_data()?;
            rustix::fs::renameat(&self.opened, NEW_FILE, &self.opened, FILE)?;
            // After the rename, which changes the change time.
            version(&file)
        };
        write().map_err(|error: io::Error| failed(self.path, "write", error))
    }
}

/// Checks that an open file or directory belongs to this user alone.
fn check_private(directory: &Path, file: &File, path: &Path) -> Result<(), GrantRecordError> {
    let metadata = file
        .metadata()
        .map_err(|error| failed(directory, "inspect", error))?;
    let uid = rustix::process::geteuid().as_raw();
    if metadata.uid() == uid && metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    let path = path.to_owned();
    Err(GrantRecordError::NotPrivate { path, uid })
}

fn version(file: &File) -> io::Result<Version> {
    let metadata = file.metadata()?;
    Ok(Version {
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.size(),
        change_time: (metadata.ctime(), metadata.ctime_nsec()),
    })
}

fn failed(
    directory: &Path,
    operation: &'static str,
    error: impl Into<io::Error>,
) -> GrantRecordError {
    GrantRecordError::Os {
        operation,
        directory: directory.to_owned(),
        error: error.into(),
    }
}

/// Encodes a record: a line with its format and length, then a time, a space, a path and a NUL for each
/// directory. Paths need not be UTF-8.
fn encode(granted: &GrantedRoots) -> Vec<u8> {
    let roots = granted.iter();
    let mut bytes = format!("{HEADER}{}\n", roots.len()).into_bytes();
    for (root, time) in roots {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        let since = since.unwrap_or_default();
        let time = format!("{}.{:09} ", since.as_secs(), since.subsec_nanos());
        bytes.extend(time.bytes());
        bytes.extend(root.as_os_str().as_bytes());
        bytes.push(0);
    }
    bytes
}

/// Decodes a record, if it is complete.
fn decode(bytes: &[u8]) -> Option<GrantedRoots> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (header, entries) = bytes.split_at(end);
    let header = std::str::from_utf8(header).ok()?;
    let count: usize = header.strip_prefix(HEADER)?.parse().ok()?;
    let entries = &entries[1..];
    let mut granted = GrantedRoots::default();
    let mut found = 0;
    for entry in entries.split_inclusive(|byte| *byte == 0) {
        let entry = entry.strip_suffix(b"\0")?;
        let space = entry.iter().position(|byte| *byte == b' ')?;
        let (seconds, nanoseconds) = std::str::from_utf8(&entry[..space]).ok()?.split_once('.')?;
        let nanoseconds: u32 = nanoseconds.parse().ok().filter(|n| *n < 1_000_000_000)?;
        let since = Duration::new(seconds.parse().ok()?, nanoseconds);
        let root = Path::new(OsStr::from_bytes(&entry[space + 1..]));
        if !root.is_absolute() {
            return None;
        }
        granted.insert(root, SystemTime::UNIX_EPOCH.checked_add(since)?);
        found += 1;
    }
    (found == count).then_some(granted)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::{Network, Origin, PathState, Rule};

    fn writing(roots: &[&str]) -> Plan {
        let rules = roots.iter().map(|root| {
            let (access, presence) = (Access::Write, PathState::Directory);
            Rule::new(root.into(), access, presence, Origin::Entry)
        });
        Plan {
            rules: rules.collect(),
            links: Vec::new(),
            network: Network::Restricted,
            listen: Vec::new(),
            cwd: "/".into(),
            warnings: Vec::new(),
        }
    }

    fn roots(record: &GrantRecord) -> Vec<PathBuf> {
        let granted = record.load().expect("load");
        granted.iter().map(|(root, _)| root.to_owned()).collect()
    }

    /// Returns a record in a new directory.
    fn stored() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("create directory");
        let path = directory.path().join("state/sandbox");
        (directory, path)
    }

    fn record(path: &Path) -> GrantRecord {
        GrantRecord::new(Some(path.to_owned()))
    }

    #[test]
    fn grants_outlive_the_record_and_reach_others() {
        let (_directory, path) = stored();
        let (first, second) = (record(&path), record(&path));
        assert_eq!(roots(&first), [""; 0].map(PathBuf::from));
        let now = SystemTime::now();
        first
            .record(&writing(&["/a", "/b\u{fffd}\n c"]), now)
            .expect("record");
        second.record(&writing(&["/c"]), now).expect("record");
        second.record(&writing(&[]), now).expect("record");
        let all = ["/a", "/b\u{fffd}\n c", "/c"].map(PathBuf::from);
        assert_eq!(roots(&first), all);
        assert_eq!(roots(&second), all);
        assert_eq!(roots(&record(&path)), all);
        let mode = |path: &Path| path.metadata().expect("stat").mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(&path.join(FILE)), 0o600);
        assert!(!path.join(NEW_FILE).exists());
    }

    #[test]
    fn file_is_written_only_for_new_directories() {
        let (_directory, path) = stored();
        let first = record(&path);
        let inode = || path.join(FILE).metadata().expect("stat").ino();
        first
            .record(&writing(&["/a"]), SystemTime::now())
            .expect("record");
        let before = (inode(), File::open(path.join(FILE)).expect("open"));
        for record in [&first, &record(&path)] {
            let plan = writing(&["/a/b", "/a"]);
            record.record(&plan, SystemTime::now()).expect("record");
            assert_eq!(inode(), before.0);
        }
        first
            .record(&writing(&["/b"]), SystemTime::now())
            .expect("record");
        assert_ne!(inode(), before.0);
    }

    #[test]
    fn removed_file_is_written_again() {
        let (_directory, path) = stored();
        let running = record(&path);
        running
            .record(&writing(&["/a"]), SystemTime::now())
            .expect("record");
        std::fs::remove_dir_all(&path).expect("remove");
        assert_eq!(roots(&running), ["/a"].map(PathBuf::from));
        running
            .record(&writing(&["/a"]), SystemTime::now())
            .expect("record");
        assert_eq!(roots(&record(&path)), ["/a"].map(PathBuf::from));
        // Another process starts a new record meanwhile.
        std::fs::remove_dir_all(&path).expect("remove");
        record(&path)
            .record(&writing(&["/b"]), SystemTime::now())
            .expect("record");
        running
            .record(&writing(&["/a"]), SystemTime::now())
            .expect("record");
        assert_eq!(roots(&record(&path)), ["/a", "/b"].map(PathBuf::from));
    }

    #[test]
    fn concurrent_grants_are_all_recorded() {
        let (_directory, path) = stored();
        let shared = record(&path);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (shared, path) = (&shared, &path);
                scope.spawn(move || {
                    let own = record(path);
                    let record = if thread % 2 == 0 { shared } else { &own };
                    for number in 0..10 {
                        let root = format!("/{thread}-{number}");
                        let plan = writing(&[&root]);
                        record.record(&plan, SystemTime::now()).expect("record");
                        assert!(roots(&super::tests::record(path)).contains(&root.into()));
                    }
                });
            }
        });
        assert_eq!(roots(&record(&path)).len(), 80);
    }

    #[test]
    fn damaged_record_is_an_error() {
        let (_directory, path) = stored();
        let now = SystemTime::now();
        record(&path)
            .record(&writing(&["/a", "/b"]), now)
            .expect("record");
        let whole = std::fs::read(path.join(FILE)).expect("read");
        let relative = format!("{HEADER}1\n1.0 a\0");
        let damaged = [
            &b""[..],
            b"x",
            &whole[..whole.len() - 1],
            &whole[..40],
            relative.as_bytes(),
        ];
        for bytes in damaged {
            std::fs::write(path.join(FILE), bytes).expect("write");
            let opened = record(&path);
            let error = opened.load().expect_err("damaged");
            assert!(matches!(error, GrantRecordError::Damaged(_)), "{error}");
            let message = error.to_string();
            assert!(message.contains("remove the file"), "{message}");
            opened.record(&writing(&["/c"]), now).expect_err("damaged");
        }
        std::fs::remove_file(path.join(FILE)).expect("remove");
        record(&path)
            .record(&writing(&["/c"]), now)
            .expect("record");
    }

    #[test]
    fn record_open_to_others_is_an_error() {
        let (_directory, path) = stored();
        record(&path)
            .record(&writing(&["/a"]), SystemTime::now())
            .expect("record");
        for (path_changed, wrong, right) in [
            (path.clone(), 0o770, 0o700),
            (path.join(FILE), 0o622, 0o600),
        ] {
            let chmod = |mode| {
                let permissions = std::fs::Permissions::from_mode(mode);
                std::fs::set_permissions(&path_changed, permissions).expect("chmod");
            };
            chmod(wrong);
            let error = record(&path).load().expect_err("not private");
            assert!(
                matches!(error, GrantRecordError::NotPrivate { .. }),
                "{error}"
            );
            chmod(right);
            record(&path).load().expect("load");
        }
    }
}
