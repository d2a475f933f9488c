//! Keeps file operations away from this process's own files in `/proc`.
//!
//! `/proc/self/mem` has the secrets of all clients, and `/proc/self/fd` their open files. A file is
//! judged after it was opened, by what it is and not by its path, so that neither links nor a race
//! lead around the check. Links to the open files and directories of a process (`fd`, `root`, `cwd`)
//! leave `/proc` again; they are rejected while the path is resolved (`resolve`).

use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, AsRawFd as _, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, PROC_SUPER_MAGIC, fstat, fstatfs, openat, readlinkat, statat,
};

use crate::{FilesError, secrets};

/// The inode of the root of a procfs.
const ROOT_INODE: u64 = 1;

/// Passes a newly opened file on, unless it belongs to this process in a procfs, or is a secret of it.
pub(crate) fn check_not_own(file: OwnedFd) -> Result<OwnedFd, FilesError> {
    if fstatfs(&file)?.f_type == PROC_SUPER_MAGIC && is_own(&file) {
        return Err(FilesError::OwnProcfs);
    }
    secrets::check(|| fstat(&file))?;
    Ok(file)
}

/// Whether a file in a procfs belongs to this process or to an unknown process.
fn is_own(file: impl AsFd) -> bool {
    let Some(path) = path_of(file) else {
        return true;
    };
    let Some(root) = path.ancestors().find(|path| is_procfs_root(path)) else {
        return true;
    };
    let below = path.strip_prefix(root).ok();
    match below.and_then(|path| path.iter().next()?.to_str()?.parse().ok()) {
        Some(id) => is_own_thread(root, id),
        // Not about a single process, such as `/proc/meminfo`.
        None => false,
    }
}

/// Whether an id in a procfs is this process, one of its threads, or has ended. A file of an ended
/// thread may still give access to the memory of its process.
fn is_own_thread(root: &Path, id: u32) -> bool {
    let exists = |path: PathBuf| statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    let id = id.to_string();
    // `self` is the id in the PID namespace of this procfs, which may not be ours.
    exists(root.join("self/task").join(&id)) || !exists(root.join(&id))
}

/// The path of an open file, without symbolic links.
fn path_of(file: impl AsFd) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let link = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    let path = readlinkat(CWD, link, Vec::new()).ok()?;
    Some(std::ffi::OsString::from_vec(path.into_bytes()).into())
}

fn is_procfs_root(path: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(directory) = openat(CWD, path, flags, Mode::empty()) else {
        return false;
    };
    fstatfs(&directory).is_ok_and(|found| found.f_type == PROC_SUPER_MAGIC)
        && rustix::fs::fstat(&directory).is_ok_and(|stat| stat.st_ino == ROOT_INODE)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn open(path: &str) -> Result<OwnedFd, FilesError> {
        check_not_own(openat(
            CWD,
            path,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
        )?)
    }

    fn is_rejected(path: &str) -> bool {
        matches!(open(path), Err(FilesError::OwnProcfs))
    }

    #[test]
    fn files_of_this_process_are_rejected() {
        let pid = std::process::id();
        let thread = rustix::thread::gettid().as_raw_nonzero();
        for path in [
            "/proc/self",
            "/proc/self/mem",
            "/proc/self/status",
            "/proc/self/task",
            "/proc/thread-self/mem",
            "/proc/self/root/proc/self/environ",
            "/proc/net",
            &format!("/proc/{pid}/mem"),
            &format!("/proc/{thread}/mem"),
            &format!("/proc/{pid}/task/{thread}/mem"),
            &format!("/proc/{pid}/../{pid}/maps"),
        ] {
            assert!(is_rejected(path), "{path}");
        }
    }

    #[test]
    fn files_of_ended_threads_are_rejected() {
        let open = std::thread::spawn(|| {
            let thread = rustix::thread::gettid().as_raw_nonzero();
            let path = format!("/proc/{thread}/status");
            openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap()
        });
        let file = open.join().unwrap();
        assert!(matches!(check_not_own(file), Err(FilesError::OwnProcfs)));
    }

    #[test]
    fn other_files_are_accepted() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let status = format!("/proc/{}/status", child.id());
        for path in [
            "/",
            "/proc",
            "/proc/meminfo",
            "/proc/sys/kernel/ostype",
            &status,
        ] {
            assert!(open(path).is_ok(), "{path}");
        }
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
