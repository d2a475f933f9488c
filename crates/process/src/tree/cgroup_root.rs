//! The directory that contains the cgroups of one spawner.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::{cgroup, own_cgroup};

/// Distinguishes the spawners of one program.
static SPAWNERS: AtomicU64 = AtomicU64::new(0);

/// How long to wait for killed processes to be gone.
const EXIT_TIMEOUT: Duration = Duration::from_millis(50);

/// How many empty cgroups are kept for reuse.
const MAX_RELEASED: usize = 64;

/// The prefix of the directory names, before the pid.
const PREFIX: &str = "outpost-";

/// `outpost-PID-N` below the server's own cgroup. Every tree in it holds a reference; dropping the
/// last one removes it.
#[derive(Debug)]
pub(crate) struct CgroupRoot {
    path: PathBuf,
    /// Locked with `flock` while the server lives. A server that gets the lock of another directory
    /// knows that its owner is dead.
    directory: OwnedFd,
    next: AtomicU64,
    /// Cgroups whose owner was dropped while they were populated.
    abandoned: Mutex<Vec<u64>>,
    /// Empty cgroups for reuse.
    released: Mutex<Vec<u64>>,
}

impl CgroupRoot {
    /// Creates the directory, and proves with a real child that everything needed works.
    pub(crate) fn open() -> io::Result<Self> {
        let own = own_cgroup::path().ok_or(io::ErrorKind::NotFound)?;
        remove_stale(&own);
        let root = Self::create(&own)?;
        cgroup::probe(&root)?;
        Ok(root)
    }

    fn create(own: &Path) -> io::Result<Self> {
        // A name may be taken by a program that has the same pid in another pid namespace.
        for _ in 0..16 {
            let number = SPAWNERS.fetch_add(1, Ordering::Relaxed);
            let path = own.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755)) {
                Err(Errno::EXIST) => continue,
                result => result?,
            }
            // Another server's `remove_stale` may remove or lock the directory before it is locked
            // here; then try the next name.
            let Ok(directory) = open_directory(&path) else {
                continue;
            };
            let exclusive = FlockOperation::NonBlockingLockExclusive;
            if rustix::fs::flock(&directory, exclusive).is_err() || open_directory(&path).is_err() {
                continue;
            }
            return Ok(Self {
                path,
                directory,
                next: AtomicU64::new(0),
                abandoned: Mutex::default(),
                released: Mutex::default(),
            });
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Returns a number that no cgroup below this root has had.
    pub(super) fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes an empty cgroup for reuse.
    pub(super) fn take_released(&self) -> Option<u64> {
        self.released.lock().pop()
    }

    /// Takes back an empty cgroup: keeps it for reuse if possible, otherwise removes it. Returns
    /// whether it succeeded.
    pub(super) fn release(&self, number: u64, reusable: bool) -> bool {
        let reusable = reusable && !cgroup::has_nested(self.directory(), number);
        let mut released = self.released.lock();
        if reusable && released.len() < MAX_RELEASED {
            released.push(number);
            return true;
        }
        drop(released);
        cgroup::remove(self.directory(), number).is_ok()
    }

    /// Takes over a cgroup that is populated although its owner was dropped.
    pub(super) fn abandon(&self, number: u64) {
        self.abandoned.lock().push(number);
    }

    /// Removes abandoned cgroups that are empty now.
    pub(super) fn remove_abandoned(&self) {
        let is_populated = |number: &u64| cgroup::remove(self.directory(), *number).is_err();
        self.abandoned.lock().retain(is_populated);
    }
}

impl Drop for CgroupRoot {
    fn drop(&mut self) {
        self.abandoned.lock().append(&mut self.released.lock());
        self.remove_abandoned();
        if !self.abandoned.lock().is_empty() {
            wait_until_empty(self.directory());
            self.remove_abandoned();
        }
        if let Err(error) = rustix::fs::rmdir(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "cannot remove cgroup");
        }
    }
}

fn open_directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Waits until killed processes are gone. The kernel notifies changes of `cgroup.events`.
fn wait_until_empty(directory: BorrowedFd<'_>) {
    let Ok(events) = cgroup::open(directory, "cgroup.events", OFlags::RDONLY) else {
        return;
    };
    let end = Instant::now() + EXIT_TIMEOUT;
    while cgroup::is_populated(&events) {
        let left = end.saturating_duration_since(Instant::now());
        let Ok(left) = Timespec::try_from(left) else {
            return;
        };
        let mut change = [PollFd::new(&events, PollFlags::PRI)];
        if !matches!(rustix::event::poll(&mut change, Some(&left)), Ok(1..)) {
            return;
        }
    }
}

/// Kills and removes the cgroups of dead servers, whose lock is free.
fn remove_stale(own: &Path) {
    for entry in std::fs::read_dir(own).into_iter().flatten().flatten() {
        if !entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
        {
            continue;
        }
        let Ok(directory) = open_directory(&entry.path()) else {
            continue;
        };
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        if rustix::fs::flock(&directory, exclusive).is_ok() {
            let _ = cgroup::write(directory.as_fd(), "cgroup.kill", b"1");
            wait_until_empty(directory.as_fd());
            let _ = cgroup::remove_nested(directory.as_fd(), 4);
            let _ = rustix::fs::unlinkat(rustix::fs::CWD, entry.path(), AtFlags::REMOVEDIR);
        }
    }
}
