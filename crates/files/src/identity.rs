//! The identity of a file, independent of its path.

use rustix::fd::AsFd;
use rustix::fs::{FileType, Stat, fstat};
use rustix::io::Errno;

/// A file's device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(crate) fn of(file: impl AsFd) -> Result<Self, Errno> {
        Ok(Self::from(&fstat(file)?))
    }
}

impl From<&Stat> for Identity {
    fn from(stat: &Stat) -> Self {
        Identity {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
