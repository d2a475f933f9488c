//! The directory that contains the cgroups of one spawner, below the cgroup of this process.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use outpost_types::EndedProcess;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, statat, unlinkat};
use rustix::io::Errno;

use super::cgroup;
use super::stale_cgroups::{self, ServerMark};

/// Distinguishes the spawners of one program.
static SPAWNERS: AtomicU64 = AtomicU64::new(0);

/// How long to wait for killed processes to be gone.
const EXIT_TIMEOUT: Duration = Duration::from_millis(50);

/// How many empty cgroups are kept for reuse.
const MAX_RELEASED: usize = 64;

/// How many removed cgroups are remembered.
const MAX_REMOVED: usize = 64 * 1024;

/// The prefix of the directory names, before the pid.
pub(super) const PREFIX: &str = "outpost-";

/// `outpost-PID-N` below the server's own cgroup. Every tree in it holds a reference; dropping the
/// last one removes it.
#[derive(Debug)]
pub(crate) struct CgroupRoot {
    path: PathBuf,
    directory: OwnedFd,
    /// The number of the next cgroup.
    pub(super) next: AtomicU64,
    /// Cgroups whose owner was dropped while they were populated.
    pub(super) abandoned: Mutex<Vec<u64>>,
    /// Empty cgroups for reuse.
    pub(super) released: Mutex<Vec<u64>>,
    /// How many are kept: none if they have limits.
    max_released: usize,
    removed: Arc<RemovedCgroups>,
}

/// The ids of the cgroups that this server removed last. A socket that was created in one can outlive it,
/// in another process. The kernel does not use an id again.
#[derive(Debug, Default)]
pub(crate) struct RemovedCgroups(Mutex<VecDeque<u64>>);

impl RemovedCgroups {
    pub(super) fn contains(&self, id: u64) -> bool {
        self.0.lock().contains(&id)
    }
}

impl CgroupRoot {
    /// Ends what dead servers left, creates the directory, and proves with a real child that
    /// everything needed works. Also returns the processes that were killed.
    pub(super) fn open(removed: &Arc<RemovedCgroups>) -> io::Result<(Self, Vec<EndedProcess>)> {
        let own = own_cgroup().ok_or(io::ErrorKind::NotFound)?;
        let ended = stale_cgroups::end_all(&own);
        let root = Self::create_in(&own, MAX_RELEASED, removed)?;
        cgroup::probe(&root)?;
        Ok((root, ended))
    }

    /// Creates another directory, after the current directory was removed.
    pub(super) fn create_again(&self) -> io::Result<Self> {
        let own = own_cgroup().ok_or(io::ErrorKind::NotFound)?;
        let root = Self::create_in(&own, MAX_RELEASED, &self.removed)?;
        tracing::warn!(
            removed = %self.path.display(),
            created = %root.path.display(),
            "cgroup of the server was removed; created another"
        );
        Ok(root)
    }

    pub(super) fn create_in(
        own: &Path,
        max_released: usize,
        removed: &Arc<RemovedCgroups>,
    ) -> io::Result<Self> {
        // A name may be taken by a program that has the same pid in another pid namespace.
        for _ in 0..16 {
            let number = SPAWNERS.fetch_add(1, Ordering::Relaxed);
            let path = own.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755)) {
                Err(Errno::EXIST) => continue,
                result => result?,
            }
            let opened = open_directory(&path);
            let directory = opened.inspect_err(|_| {
                let _ = rustix::fs::rmdir(&path);
            })?;
            if let Err(error) = ServerMark::of_this_process().and_then(|mark| mark.set(&directory))
            {
                // Then no other server ends what this one may leave.
                tracing::debug!(%error, path = %path.display(), "cannot mark cgroup");
            }
            // Older servers end what is in an unlocked directory of this name.
            let _ = rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive);
            return Ok(Self {
                path,
                directory,
                next: AtomicU64::new(0),
                abandoned: Mutex::default(),
                released: Mutex::default(),
                max_released,
                removed: Arc::clone(removed),
            });
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Whether a cgroup lies in this directory. Its id is the inode of its directory.
    pub(super) fn contains(&self, id: u64) -> io::Result<bool> {
        contains(&self.path, id)
    }

    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Takes back an empty cgroup: keeps it for reuse if possible, otherwise removes it. Returns
    /// whether it succeeded.
    pub(super) fn release(&self, number: u64, reusable: bool) -> bool {
        let reusable = reusable && !cgroup::has_nested(self.directory(), number);
        let mut released = self.released.lock();
        if reusable && released.len() < self.max_released {
            released.push(number);
            return true;
        }
        drop(released);
        cgroup::remove(self, number).is_ok()
    }

    /// Removes the directory of a cgroup.
    pub(super) fn remove_directory(&self, number: u64) -> Result<(), Errno> {
        let name = number.to_string();
        let directory = self.directory();
        // Held until the id is remembered: at any time, a cgroup either exists or is remembered.
        let mut removed = self.removed.0.lock();
        let id = statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW)?.st_ino;
        unlinkat(directory, &name, AtFlags::REMOVEDIR)?;
        if removed.len() == MAX_REMOVED {
            removed.pop_front();
        }
        removed.push_back(id);
        Ok(())
    }

    /// Removes abandoned cgroups that are empty now.
    pub(super) fn remove_abandoned(&self) {
        let is_populated = |number: &u64| cgroup::remove(self, *number).is_err();
        self.abandoned.lock().retain(is_populated);
    }
}

impl Drop for CgroupRoot {
    fn drop(&mut self) {
        self.abandoned.lock().append(&mut self.released.lock());
        self.remove_abandoned();
        if !self.abandoned.lock().is_empty() {
            wait_until_empty(self.directory(), Instant::now() + EXIT_TIMEOUT);
            self.remove_abandoned();
        }
        if let Err(error) = rustix::fs::rmdir(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "cannot remove cgroup");
        }
    }
}

fn contains(directory: &Path, id: u64) -> io::Result<bool> {
    let entries = match std::fs::read_dir(directory) {
        // Removed in the meantime.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() && (entry.ino() == id || contains(&entry.path(), id)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Waits until killed processes are gone, and returns whether they are. The kernel notifies changes of
/// `cgroup.events`.
pub(super) fn wait_until_empty(directory: BorrowedFd<'_>, deadline: Instant) -> bool {
    let Ok(events) = cgroup::open(directory, "cgroup.events", OFlags::RDONLY) else {
        return false;
    };
    while cgroup::is_populated(&events) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        // Bounded: the kernel delays notifications, and drops them if the cgroup is removed meanwhile.
        let pause = Timespec::try_from(left.min(EXIT_TIMEOUT)).unwrap_or_default();
        let mut change = [PollFd::new(&events, PollFlags::PRI)];
        let _ = rustix::event::poll(&mut change, Some(&pause));
    }
    true
}

/// Finds the version 2 cgroup of this process from `/proc/self/cgroup` and `/proc/self/mountinfo`.
/// Returns `None` if it is not mounted visibly. It may be mounted anywhere, also beside version 1.
pub(super) fn own_cgroup() -> Option<PathBuf> {
    let cgroup = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
    cgroup_path(&cgroup, &mounts, CgroupMount::Version2)
}

/// A mounted hierarchy of cgroups.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum CgroupMount {
    Version2,
    /// The hierarchy with this controller.
    Version1(&'static str),
}

impl CgroupMount {
    /// Parses a line of `/proc/self/cgroup`, `ID:CONTROLLERS:PATH`.
    fn path_in(self, line: &str) -> Option<&str> {
        let (id, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let is_this = match self {
            CgroupMount::Version2 => id == "0" && controllers.is_empty(),
            CgroupMount::Version1(name) => controllers.split(',').any(|one| one == name),
        };
        is_this.then_some(path)
    }

    fn is_type(self, file_system: &[u8], options: &[u8]) -> bool {
        match self {
            CgroupMount::Version2 => file_system == b"cgroup2",
            CgroupMount::Version1(name) => {
                let mut options = options.split(|byte| *byte == b',');
                file_system == b"cgroup" && options.any(|option| option == name.as_bytes())
            }
        }
    }
}

/// Finds the cgroup of a process in a hierarchy, from its `/proc/PID/cgroup` and `/proc/PID/mountinfo`.
pub(crate) fn cgroup_path(cgroups: &str, mounts: &[u8], mount: CgroupMount) -> Option<PathBuf> {
    let own = cgroups.lines().find_map(|line| mount.path_in(line))?;
    mounts
        .split(|byte| *byte == b'\n')
        .find_map(|line| directory(own, line, mount))
}

/// Parses `36 35 0:28 /root /mount/point rw,… optional… - cgroup2 source options`.
fn directory(own: &str, line: &[u8], kind: CgroupMount) -> Option<PathBuf> {
    let mut fields = line.split(|byte| *byte == b' ');
    let root = String::from_utf8(unescape_mountinfo(fields.nth(3)?)).ok()?;
    let mount = unescape_mountinfo(fields.next()?);
    fields.find(|field| *field == b"-")?;
    let (file_system, options) = (fields.next()?, fields.nth(1).unwrap_or_default());
    if !kind.is_type(file_system, options) {
        return None;
    }
    // A root of `/..` lies outside this cgroup namespace.
    let below = match root.as_str() {
        "/" => own,
        root => own
            .strip_prefix(root)
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))?,
    };
    if below.split('/').any(|part| part == "..") {
        return None;
    }
    let mount = PathBuf::from(OsString::from_vec(mount));
    Some(mount.join(below.trim_start_matches('/')))
}

/// Decodes the octal escapes (`\040`) that mountinfo uses for blanks and other special characters.
#[must_use]
pub fn unescape_mountinfo(field: &[u8]) -> Vec<u8> {
    let mut parts = field.split(|byte| *byte == b'\\');
    let mut bytes = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let digits = part.get(..3).and_then(|digits| str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => bytes.extend([&[byte], &part[3..]].concat()),
            None => bytes.extend([b"\\", part].concat()),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(cgroup: &str, mounts: &str) -> Option<String> {
        let path = cgroup_path(cgroup, mounts.as_bytes(), CgroupMount::Version2)?;
        Some(path.to_str()?.to_owned())
    }

    #[test]
    fn finds_version_2_beside_version_1() {
        let cgroup = "4:memory:/a/b\n0::/\n";
        let mounts = "\
            31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
            35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:1 - cgroup2 cgroup2 rw\n";
        let found = located(cgroup, mounts);
        assert_eq!(found.as_deref(), Some("/sys/fs/cgroup/unified/"));
    }

    #[test]
    fn finds_version_1_by_its_controller() {
        let cgroups = "9:cpu,cpuacct:/a\n4:memory,hugetlb:/a/b\n0::/\n";
        let mounts = b"\
            32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
            35 31 0:32 /a /sys/fs/cgroup/memory rw shared:1 - cgroup cgroup rw,memory,hugetlb\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let found = |name| cgroup_path(cgroups, mounts, CgroupMount::Version1(name));
        assert_eq!(found("memory"), Some("/sys/fs/cgroup/memory/b".into()));
        assert_eq!(found("cpuacct"), Some("/sys/fs/cgroup/cpu/a".into()));
        assert_eq!(found("pids"), None);
    }

    #[test]
    fn respects_root_of_mount() {
        let mounts = "41 31 0:38 /docker/x /cg\\040two rw - cgroup2 cgroup2 rw\n";
        let found = located("0::/docker/x/y\n", mounts);
        assert_eq!(found.as_deref(), Some("/cg two/y"));
        assert_eq!(located("0::/docker/xy\n", mounts), None);
        assert_eq!(located("0::/elsewhere\n", mounts), None);
    }

    #[test]
    fn rejects_paths_outside_the_namespace() {
        let mounts = "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n";
        assert_eq!(located("0::/../x\n", mounts), None);
        assert_eq!(located("4:memory:/\n", mounts), None);
        assert_eq!(located("0::/\n", ""), None);
    }
}
