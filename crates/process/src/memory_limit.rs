//! How much memory this process may use.

use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use crate::tree::{CgroupMount, cgroup_path};

/// The largest value of a version 1 cgroup without a limit is a multiple of the page size below `i64::MAX`.
const UNLIMITED: u64 = 1 << 60;

/// Returns the least of: the memory of the host, the limits of the cgroups that this process is in, and its
/// limit of address space, in bytes. `None` if none of them is known.
pub fn memory_limit() -> Option<u64> {
    let address_space = getrlimit(Resource::As).current;
    let limits = [host_memory(), cgroup_limit(), address_space];
    limits.into_iter().flatten().min()
}

fn host_memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = info
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Returns the lowest limit of the cgroups of this process and those above, of both versions.
fn cgroup_limit() -> Option<u64> {
    let cgroups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
    let files = [
        (CgroupMount::Version2, "memory.max"),
        (CgroupMount::Version1("memory"), "memory.limit_in_bytes"),
    ];
    let limits = files.into_iter().filter_map(|(mount, file)| {
        let path = cgroup_path(&cgroups, &mounts, mount)?;
        lowest(&path, file)
    });
    limits.min()
}

/// Returns the lowest limit in files of this name, in a directory and those above.
fn lowest(directory: &Path, file: &str) -> Option<u64> {
    let files = directory.ancestors().map(|above| above.join(file));
    files.filter_map(read_limit).min()
}

/// Reads a limit. There is none in a directory outside of the cgroup file system, nor is `max` one.
fn read_limit(file: PathBuf) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let limit: u64 = text.trim().parse().ok()?;
    (limit < UNLIMITED).then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_limit_counts() {
        let root = tempfile::tempdir().expect("create directory");
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(&inner).expect("create directory");
        let write = |path: &str, text: &str| {
            std::fs::write(root.path().join(path), text).expect("write");
        };
        assert_eq!(lowest(&inner, "memory.max"), None);
        write("a/b/memory.max", "max\n");
        write("a/memory.max", "3000\n");
        write("memory.max", "9223372036854771712\n");
        assert_eq!(lowest(&inner, "memory.max"), Some(3000));
        write("a/b/memory.max", "2000\n");
        assert_eq!(lowest(&inner, "memory.max"), Some(2000));
    }

    #[test]
    fn host_has_memory() {
        let host = host_memory().expect("there is /proc/meminfo");
        assert!(host > 1 << 20);
        assert!(memory_limit().expect("known") <= host);
    }
}
