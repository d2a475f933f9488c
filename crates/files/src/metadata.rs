//! What is known about a path.

use std::path::{Path, PathBuf};

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags, StatxTimestamp, statat, statx};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::identity::file_type;
use crate::{Files, FilesError, Links};

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// A directory.
    pub is_directory: bool,
    /// A regular file.
    pub is_file: bool,
    /// The path itself is a link; everything else here is about its target.
    pub is_symlink: bool,
    /// In bytes.
    pub size: u64,
    /// Milliseconds since 1970; none where the file system doesn't know.
    pub created_at_ms: Option<i64>,
    /// Milliseconds since 1970.
    pub modified_at_ms: i64,
}

impl Files {
    /// What a path leads to, by way of all its links.
    pub fn metadata(&self, path: &Path, links: Links) -> Result<Metadata, FilesError> {
        if links == Links::Refuse {
            let there = self.open_path(path, OFlags::PATH, Mode::empty(), links)?;
            return look(&there, c"", AtFlags::EMPTY_PATH);
        }
        let itself = look(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
        if !itself.is_symlink {
            return Ok(itself);
        }
        Ok(Metadata {
            is_symlink: true,
            ..look(CWD, path, AtFlags::empty())?
        })
    }

    /// The same place without any link in its path.
    pub fn canonicalize(&self, path: &Path) -> Result<PathBuf, FilesError> {
        Ok(std::fs::canonicalize(path)?)
    }
}

fn look(place: impl AsFd, path: impl Arg + Copy, flags: AtFlags) -> Result<Metadata, FilesError> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    match statx(place.as_fd(), path, flags, wanted) {
        Ok(found) => {
            let kind = FileType::from_raw_mode(found.stx_mode.into());
            let has_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
            Ok(Metadata {
                is_directory: kind == FileType::Directory,
                is_file: kind == FileType::RegularFile,
                is_symlink: kind == FileType::Symlink,
                size: found.stx_size,
                created_at_ms: has_birth.then(|| millis(found.stx_btime)),
                modified_at_ms: millis(found.stx_mtime),
            })
        }
        // Filtered, in some containers; the older call knows everything but the birth.
        Err(Errno::NOSYS) => {
            let found = statat(place, path, flags)?;
            let kind = file_type(&found);
            Ok(Metadata {
                is_directory: kind == FileType::Directory,
                is_file: kind == FileType::RegularFile,
                is_symlink: kind == FileType::Symlink,
                size: u64::try_from(found.st_size).unwrap_or(0),
                created_at_ms: None,
                modified_at_ms: found.st_mtime.saturating_mul(1000)
                    + i64::try_from(found.st_mtime_nsec / 1_000_000).unwrap_or(0),
            })
        }
        Err(error) => Err(error.into()),
    }
}

fn millis(time: StatxTimestamp) -> i64 {
    time.tv_sec.saturating_mul(1000) + i64::from(time.tv_nsec / 1_000_000)
}
