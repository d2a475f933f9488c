//! What the layout of mounts has to know about the host, beyond the plan.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

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
    /// Whether it is a device.
    fn is_device(&self, path: &Path) -> bool;
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

    fn is_device(&self, path: &Path) -> bool {
        let metadata = path.symlink_metadata();
        let kind = metadata.map(|metadata| metadata.file_type());
        kind.is_ok_and(|kind| kind.is_char_device() || kind.is_block_device())
    }
}
