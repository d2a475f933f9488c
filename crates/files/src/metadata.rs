//! Metadata and canonical form of a path.

use std::path::{Path, PathBuf};

use outpost_types::{FileMetadata, Symlinks};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags, StatxTimestamp, statat, statx};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::identity::file_type;
use crate::{Files, FilesError};

impl Files {
    /// The metadata of the file that a path leads to.
    pub fn metadata(&self, path: &Path, symlinks: Symlinks) -> Result<FileMetadata, FilesError> {
        if symlinks == Symlinks::Reject {
            let file = self.open_path(path, OFlags::PATH, Mode::empty(), symlinks)?;
            return stat(&file, c"", AtFlags::EMPTY_PATH);
        }
        let entry = stat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
        if !entry.is_symlink {
            return Ok(entry);
        }
        Ok(FileMetadata {
            is_symlink: true,
            ..stat(CWD, path, AtFlags::empty())?
        })
    }

    /// The path with all symbolic symlinks resolved.
    pub fn canonicalize(&self, path: &Path) -> Result<PathBuf, FilesError> {
        Ok(std::fs::canonicalize(path)?)
    }
}

fn stat(
    directory: impl AsFd,
    path: impl Arg + Copy,
    flags: AtFlags,
) -> Result<FileMetadata, FilesError> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    match statx(directory.as_fd(), path, flags, wanted) {
        Ok(found) => {
            let kind = FileType::from_raw_mode(found.stx_mode.into());
            let has_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
            Ok(FileMetadata {
                is_directory: kind == FileType::Directory,
                is_file: kind == FileType::RegularFile,
                is_symlink: kind == FileType::Symlink,
                size: found.stx_size,
                created_at_ms: if has_birth {
                    millis(found.stx_btime)
                } else {
                    0
                },
                modified_at_ms: millis(found.stx_mtime),
            })
        }
        // Some container runtimes block statx. fstatat knows everything but the creation time.
        Err(Errno::NOSYS) => {
            let found = statat(directory, path, flags)?;
            let kind = file_type(&found);
            Ok(FileMetadata {
                is_directory: kind == FileType::Directory,
                is_file: kind == FileType::RegularFile,
                is_symlink: kind == FileType::Symlink,
                size: u64::try_from(found.st_size).unwrap_or(0),
                created_at_ms: 0,
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
