//! Facts about the host's paths that the mount layout needs.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use outpost_process::unescape_mountinfo;
use rustix::fs::Access;

use crate::linux::placeholder;

/// Answers questions about the host's paths at the start of a process.
pub(in crate::linux) trait HostView {
    /// Returns whether anything is at a path, including a dangling symbolic link.
    fn exists(&self, path: &Path) -> bool;
    /// Returns whether our user can read a path.
    fn is_readable(&self, path: &Path) -> bool;
    /// Returns whether our user could create something in a directory, after a `chmod` if it owns it.
    fn is_creatable_in(&self, directory: &Path) -> bool;
    /// Returns whether a placeholder is at a path.
    fn is_placeholder(&self, path: &Path) -> bool;
    /// Returns whether a directory is at a path.
    fn is_directory(&self, path: &Path) -> bool;
    /// Returns whether a device is at a path.
    fn is_device(&self, path: &Path) -> bool;
    /// Returns the mounts of kernel file systems.
    fn kernel_mounts(&self) -> Vec<KernelMount>;
}

/// The mount of a kernel file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::linux) struct KernelMount {
    pub(in crate::linux) path: PathBuf,
    pub(in crate::linux) kind: KernelMountKind,
}

/// The kind of a kernel file system.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::linux) enum KernelMountKind {
    /// procfs, which shows processes outside of the sandbox.
    Proc,
    /// File systems with settings of the host's kernel.
    Settings,
}

/// The paths of the local host.
#[derive(Debug)]
pub(in crate::linux) struct LocalHostPaths;

impl HostView for LocalHostPaths {
    fn exists(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    fn is_readable(&self, path: &Path) -> bool {
        rustix::fs::access(path, Access::READ_OK).is_ok()
    }

    fn is_creatable_in(&self, directory: &Path) -> bool {
        let Ok(metadata) = directory.metadata() else {
            return false;
        };
        let own = rustix::process::geteuid().as_raw();
        metadata.uid() == own || rustix::fs::access(directory, Access::WRITE_OK).is_ok()
    }

    fn is_placeholder(&self, path: &Path) -> bool {
        placeholder::is_placeholder(path)
    }

    fn is_directory(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok_and(|found| found.is_dir())
    }

    fn is_device(&self, path: &Path) -> bool {
        let metadata = path.symlink_metadata();
        let kind = metadata.map(|metadata| metadata.file_type());
        kind.is_ok_and(|kind| kind.is_char_device() || kind.is_block_device())
    }

    fn kernel_mounts(&self) -> Vec<KernelMount> {
        // Without `/proc` no sandbox can be started.
        let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
        let lines = table.split(|byte| *byte == b'\n');
        lines.filter_map(kernel_mount).collect()
    }
}

/// Types of file systems with settings of the host's kernel.
const SETTINGS: [&[u8]; 13] = [
    b"sysfs",
    b"cgroup",
    b"cgroup2",
    b"debugfs",
    b"tracefs",
    b"securityfs",
    b"selinuxfs",
    b"efivarfs",
    b"configfs",
    b"bpf",
    b"binfmt_misc",
    b"pstore",
    b"fusectl",
];

/// Parses a line of mountinfo, see proc_pid_mountinfo(5). Returns none for other file systems. The
/// path is the fifth field, and the type follows a hyphen.
fn kernel_mount(line: &[u8]) -> Option<KernelMount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let path = fields.nth(4)?;
    let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
    let kind = match kind {
        b"proc" => KernelMountKind::Proc,
        kind if SETTINGS.contains(&kind) => KernelMountKind::Settings,
        _ => return None,
    };
    let path = OsString::from_vec(unescape_mountinfo(path)).into();
    Some(KernelMount { path, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<KernelMount> {
        kernel_mount(line.as_bytes())
    }

    #[test]
    fn kernel_mounts_are_recognized_by_type() {
        let at = |path: &str, kind| {
            let path = path.into();
            Some(KernelMount { path, kind })
        };
        assert_eq!(
            parsed(
                r"22 27 0:21 / /srv/a\040b\134/proc rw,relatime shared:1 master:2 - proc proc rw"
            ),
            at(r"/srv/a b\/proc", KernelMountKind::Proc)
        );
        assert_eq!(
            parsed("31 23 0:28 / /sys/fs/cgroup rw - cgroup2 none rw"),
            at("/sys/fs/cgroup", KernelMountKind::Settings)
        );
        assert_eq!(
            parsed("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw"),
            None
        );
        assert_eq!(parsed(""), None);
    }
}
