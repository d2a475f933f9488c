//! What the layout of mounts has to know about the host, beyond the plan.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::placeholder;

/// Looked at when a process is started.
pub(super) trait Host {
    /// Whether there is anything at a path.
    fn exists(&self, path: &Path) -> bool;
    /// Whether whoever runs as we do could create something in a directory, if need be after giving
    /// itself the permission.
    fn is_open(&self, directory: &Path) -> bool;
    /// Whether what is there was put there by somebody like us, for want of anything.
    fn is_placeholder(&self, path: &Path) -> bool;
    /// Whether it is a directory.
    fn is_directory(&self, path: &Path) -> bool;
    /// Whether it is a device.
    fn is_device(&self, path: &Path) -> bool;
    /// Where something of the kernel's own is mounted.
    fn kernel_mounts(&self) -> Vec<KernelMount>;
}

/// Something of the kernel's own, mounted at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelMount {
    pub(super) path: PathBuf,
    pub(super) shows: Shows,
}

/// What is seen there.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    /// Processes that are none of those inside, and settings.
    Processes,
    /// Settings of the whole host.
    Settings,
}

/// The host we are on.
#[derive(Debug)]
pub(super) struct ThisHost;

impl Host for ThisHost {
    fn exists(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    fn is_open(&self, directory: &Path) -> bool {
        let Ok(metadata) = directory.metadata() else {
            return false;
        };
        let own = rustix::process::geteuid().as_raw();
        metadata.uid() == own || rustix::fs::access(directory, Access::WRITE_OK).is_ok()
    }

    fn is_placeholder(&self, path: &Path) -> bool {
        placeholder::is_one_at(path)
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
        // Where it can't be read there is no `/proc`, and nothing is started.
        let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
        let lines = table.split(|byte| *byte == b'\n');
        lines.filter_map(kernel_mount).collect()
    }
}

/// The kinds of file systems that are settings of the host's kernel.
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

/// What a line of the kernel's table of mounts is about, if that is something of its own: the path is
/// the fifth word, and the kind comes behind a dash.
fn kernel_mount(line: &[u8]) -> Option<KernelMount> {
    let mut words = line.split(|byte| *byte == b' ');
    let path = words.nth(4)?;
    let kind = words.skip_while(|word| *word != b"-").nth(1)?;
    let shows = match kind {
        b"proc" => Shows::Processes,
        kind if SETTINGS.contains(&kind) => Shows::Settings,
        _ => return None,
    };
    let path = unescaped(path).into();
    Some(KernelMount { path, shows })
}

/// Blanks, tabs, newlines and backslashes are told as three octal digits.
fn unescaped(word: &[u8]) -> OsString {
    let mut bytes = Vec::new();
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.first_chunk::<3>().filter(|_| *first == b'\\');
        let number = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match number.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> Option<KernelMount> {
        kernel_mount(line.as_bytes())
    }

    #[test]
    fn what_is_the_kernels_own_is_known_by_its_kind() {
        let at = |path: &str, shows| {
            let path = path.into();
            Some(KernelMount { path, shows })
        };
        assert_eq!(
            told(r"22 27 0:21 / /srv/a\040b\134/proc rw,relatime shared:1 master:2 - proc proc rw"),
            at(r"/srv/a b\/proc", Shows::Processes)
        );
        assert_eq!(
            told("31 23 0:28 / /sys/fs/cgroup rw - cgroup2 none rw"),
            at("/sys/fs/cgroup", Shows::Settings)
        );
        assert_eq!(told("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw"), None);
        assert_eq!(told(""), None);
    }
}
