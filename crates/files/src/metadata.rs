//! Reads the metadata of a path.

use outpost_types::{FileMetadata, FsGetMetadataParams, Symlinks};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags, StatxTimestamp, statat, statx};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::resolve::open_following;
use crate::{Files, FilesError};

const PATH: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

impl Files {
    /// The metadata of the file that a path leads to.
    pub(crate) fn metadata(&self, op: &FsGetMetadataParams) -> Result<FileMetadata, FilesError> {
        let path = op.path.as_path();
        if op.symlinks == Symlinks::Reject {
            let file = self.open_path(path, OFlags::PATH, Mode::empty(), op.symlinks)?;
            return stat(&file, c"", AtFlags::EMPTY_PATH);
        }
        let entry = open_following(path, PATH | OFlags::NOFOLLOW, Mode::empty())?;
        let entry = stat(&entry, c"", AtFlags::EMPTY_PATH)?;
        if !entry.is_symlink {
            return Ok(entry);
        }
        let target = open_following(path, PATH, Mode::empty())?;
        Ok(FileMetadata {
            is_symlink: true,
            ..stat(&target, c"", AtFlags::EMPTY_PATH)?
        })
    }
}

fn stat(
    directory: impl AsFd,
    path: impl Arg + Copy,
    flags: AtFlags,
) -> Result<FileMetadata, FilesError> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let (mode, size, created_at_ms, modified_at_ms) =
        match statx(directory.as_fd(), path, flags, wanted) {
            Ok(found) => {
                let has_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
                let millis = |time: StatxTimestamp| millis(time.tv_sec, time.tv_nsec.into());
                let created = if has_birth {
                    millis(found.stx_btime)
                } else {
                    0
                };
                let mode = found.stx_mode.into();
                (mode, found.stx_size, created, millis(found.stx_mtime))
            }
            // Some container runtimes block statx. fstatat returns everything but the creation time.
            Err(Errno::NOSYS) => {
                let found = statat(directory, path, flags)?;
                let size = u64::try_from(found.st_size).unwrap_or(0);
                let modified = millis(found.st_mtime, found.st_mtime_nsec);
                (found.st_mode, size, 0, modified)
            }
            Err(error) => return Err(error.into()),
        };
    let kind = FileType::from_raw_mode(mode);
    Ok(FileMetadata {
        is_directory: kind == FileType::Directory,
        is_file: kind == FileType::RegularFile,
        is_symlink: kind == FileType::Symlink,
        size,
        created_at_ms,
        modified_at_ms,
    })
}

fn millis(seconds: i64, nanoseconds: u64) -> i64 {
    seconds.saturating_mul(1000) + i64::try_from(nanoseconds / 1_000_000).unwrap_or(0)
}
