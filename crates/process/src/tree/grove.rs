//! The directory that holds the cgroups of all processes of one spawner.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::{cgroup, mount};

/// Distinguishes the spawners of one program.
static SPAWNERS: AtomicU64 = AtomicU64::new(0);

/// How long those that were killed are waited for. Only when there are such.
const DYING: Duration = Duration::from_millis(50);

/// How many empty cgroups are kept to be used again.
const KEPT: usize = 64;

/// What our directories are called before the number of the program.
const PREFIX: &str = "outpost-";

/// `outpost-PID-N` below our own cgroup. Every tree in it holds it; the last to go removes it.
#[derive(Debug)]
pub(crate) struct Grove {
    path: PathBuf,
    /// Locked as long as we live: who gets the lock knows that the owner is dead.
    directory: OwnedFd,
    next: AtomicU64,
    /// Cgroups that were given up while something in them was still dying.
    left: Mutex<Vec<u64>>,
    /// Empty ones that were somebody's, for the next to come.
    used: Mutex<Vec<u64>>,
}

impl Grove {
    /// Makes the directory, and proves with a real child that everything works that will be needed.
    pub(crate) fn open() -> io::Result<Self> {
        let own = mount::own_cgroup().ok_or(io::ErrorKind::NotFound)?;
        sweep(&own);
        let grove = Self::make(&own)?;
        cgroup::probe(&grove)?;
        Ok(grove)
    }

    fn make(own: &Path) -> io::Result<Self> {
        // A few names may be taken by programs that see other numbers for theirs.
        for _ in 0..16 {
            let number = SPAWNERS.fetch_add(1, Ordering::Relaxed);
            let path = own.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755)) {
                Err(Errno::EXIST) => continue,
                result => result?,
            }
            // Somebody who sweeps may have taken the fresh directory for a stale one.
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
                left: Mutex::default(),
                used: Mutex::default(),
            });
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// A number no other cgroup of this grove has had.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// An empty cgroup that was somebody's.
    pub(super) fn reuse(&self) -> Option<u64> {
        lock(&self.used).pop()
    }

    /// Takes an empty cgroup back, to be used again if that can be or removed; says whether it could.
    pub(super) fn take_back(&self, number: u64, reusable: bool) -> bool {
        let clean = reusable && !cgroup::has_below(self.directory(), number);
        let mut used = lock(&self.used);
        if clean && used.len() < KEPT {
            used.push(number);
            return true;
        }
        drop(used);
        cgroup::remove(self.directory(), number).is_ok()
    }

    /// Takes over a cgroup whose owner has gone while something was still dying in it.
    pub(super) fn leave(&self, number: u64) {
        lock(&self.left).push(number);
    }

    /// Removes what was left and has died since.
    pub(super) fn tidy(&self) {
        lock(&self.left).retain(|number| cgroup::remove(self.directory(), *number).is_err());
    }
}

impl Drop for Grove {
    fn drop(&mut self) {
        lock(&self.left).append(&mut lock(&self.used));
        self.tidy();
        if !lock(&self.left).is_empty() {
            wait_for_the_dying(self.directory());
            self.tidy();
        }
        if let Err(error) = rustix::fs::rmdir(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "a cgroup is still in use");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open_directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// What was killed a moment ago takes a moment to be gone, and the kernel tells when the last one
/// is.
fn wait_for_the_dying(directory: BorrowedFd<'_>) {
    let Ok(events) = cgroup::open(directory, "cgroup.events", OFlags::RDONLY) else {
        return;
    };
    let end = Instant::now() + DYING;
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

/// Ends what servers left behind that were killed: their lock is free, so nobody owns it any more.
fn sweep(own: &Path) {
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
            wait_for_the_dying(directory.as_fd());
            let _ = cgroup::remove_below(directory.as_fd(), 4);
            let _ = rustix::fs::unlinkat(rustix::fs::CWD, entry.path(), AtFlags::REMOVEDIR);
        }
    }
}
