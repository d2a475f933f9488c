//! Lists the tree below a directory, level by level.

use std::collections::{HashSet, VecDeque};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use outpost_types::{EntryKind, FsWalkParams, WalkEntry, WalkError, WalkOptions, WalkResult};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, statat};
use rustix::io::Errno;

use crate::directory_entries::{
    HiddenNames, Name, TakeListingMemory, first_names, take_entry_memory, target_type,
};
use crate::path_masks::PathMasks;
use crate::resolve::{Identity, file_type, open_following};
use crate::{Files, FilesError, Limits};

/// The reason of the error for a name that is not UTF-8.
const NOT_UTF8: &str = "file name is not valid UTF-8";

/// The encoded size of an empty response.
const RESPONSE_BYTES: usize =
    r#"{"id":18446744073709551615,"result":{"entries":[],"errors":[],"truncated":false}}"#.len();
/// The encoded size of a file entry without its path.
const FILE_BYTES: usize = r#"{"path":"file://","kind":"file"},"#.len();
/// The encoded size of a directory entry without its path.
const DIRECTORY_BYTES: usize = r#"{"path":"file://","kind":"directory"},"#.len();
/// The encoded size of an error without its path and message. Messages have no characters that JSON
/// escapes.
const ERROR_BYTES: usize = r#"{"path":"file://","message":""},"#.len();
/// The encoded size of an empty reason of an error.
const REASON_BYTES: usize = r#","reason":"""#.len();

fn check(options: &WalkOptions, limits: &Limits) -> Result<(), FilesError> {
    if options.max_directories == 0 || options.max_entries == 0 {
        return Err(FilesError::ZeroWalkLimit);
    }
    if options.max_depth > limits.walk_depth
        || options.max_directories > limits.walk_directories
        || options.max_entries > limits.walk_entries
    {
        return Err(FilesError::WalkLimitsTooHigh {
            depth: limits.walk_depth,
            directories: limits.walk_directories,
            entries: limits.walk_entries,
        });
    }
    Ok(())
}

impl Files {
    /// Lists the tree below a directory. The result is empty if the root is no directory.
    pub(crate) fn walk(
        &self,
        masks: &PathMasks,
        op: &FsWalkParams,
        take_memory: TakeListingMemory<'_>,
    ) -> Result<WalkResult, FilesError> {
        let (root, options) = (op.path.as_path(), op.options);
        check(&options, &self.limits)?;
        // Fails with ENOENT for a symbolic link without a target.
        let target = statat(CWD, root, AtFlags::empty())?;
        let entry = statat(CWD, root, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_link = file_type(&entry) == FileType::Symlink;
        if file_type(&target) != FileType::Directory
            || (is_link && !options.follow_directory_symlinks)
        {
            return Ok(WalkResult::default());
        }
        let mut walker = Walker {
            limits: self.limits,
            options,
            omitted: masks.omitted_names(),
            result: WalkResult::default(),
            pending: VecDeque::from([(root.to_owned(), 0)]),
            entered: HashSet::from([Identity::from(&target)]),
            directories: 1,
            examined: 0,
            bytes: RESPONSE_BYTES,
            take_memory,
        };
        while let Some((directory, depth)) = walker.pending.pop_front() {
            match walker.read(&directory, depth) {
                Ok(()) => {}
                Err(WalkEnd::LimitReached) => {
                    walker.result.truncated = true;
                    break;
                }
                Err(WalkEnd::NoMemory) => return Err(FilesError::NoListingMemory),
            }
        }
        Ok(walker.result)
    }
}

/// The encoded size of an entry without its path.
fn entry_bytes(kind: EntryKind) -> usize {
    match kind {
        EntryKind::Directory => DIRECTORY_BYTES,
        EntryKind::File => FILE_BYTES,
    }
}

/// The reason why a walk ends early.
enum WalkEnd {
    /// The result is truncated.
    LimitReached,
    /// The walk fails.
    NoMemory,
}

/// The state of a walk.
struct Walker<'a> {
    limits: Limits,
    options: WalkOptions,
    omitted: HiddenNames,
    result: WalkResult,
    /// Directories that are listed but not read yet, with their depth.
    pending: VecDeque<(PathBuf, u64)>,
    /// Directories that were or will be read. Prevents cycles through symbolic links.
    entered: HashSet<Identity>,
    directories: u64,
    examined: u64,
    bytes: usize,
    take_memory: TakeListingMemory<'a>,
}

impl Walker<'_> {
    fn read(&mut self, directory: &Path, depth: u64) -> Result<(), WalkEnd> {
        // One name more than will be examined shows that there are more.
        let left = self.options.max_entries - self.examined;
        let count = usize::try_from(left).map_or(usize::MAX, |left| left.saturating_add(1));
        let read = self.open(directory, depth).and_then(|open| {
            let names = first_names(&open, count, &self.omitted, self.take_memory)?;
            Ok((open, names))
        });
        let (open, names) = match read {
            Ok(read) => read,
            Err(FilesError::NoListingMemory) => return Err(WalkEnd::NoMemory),
            Err(error) => return self.report(directory.to_owned(), &error, None),
        };
        for name in names {
            if self.examined == self.options.max_entries {
                return Err(WalkEnd::LimitReached);
            }
            self.examined += 1;
            if name.text.to_str().is_none() {
                let readable = directory.join(name.text.to_string_lossy().as_ref());
                self.report(readable, &Errno::NOENT.into(), Some(NOT_UTF8))?;
                continue;
            }
            let Some(kind) = self.kind_of(&open, &name) else {
                continue;
            };
            let path = directory.join(&name.text);
            self.count_bytes(&path, entry_bytes(kind))?;
            self.result.entries.push(WalkEntry {
                path: path.clone(),
                kind,
            });
            if kind == EntryKind::Directory && depth < self.options.max_depth {
                self.enqueue(&open, &name, path, depth + 1);
            }
        }
        Ok(())
    }

    /// Opens a directory. One that was no symbolic link when it was listed must not be one now.
    fn open(&self, directory: &Path, depth: u64) -> Result<OwnedFd, FilesError> {
        let mut flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if depth > 0 && !self.options.follow_directory_symlinks {
            flags |= OFlags::NOFOLLOW;
        }
        open_following(directory, flags, Mode::empty())
    }

    /// The kind of an entry; none if it is not part of the result.
    fn kind_of(&self, directory: &OwnedFd, name: &Name) -> Option<EntryKind> {
        match name.kind {
            FileType::Directory => Some(EntryKind::Directory),
            FileType::RegularFile => Some(EntryKind::File),
            FileType::Symlink if self.options.follow_directory_symlinks => {
                let target = target_type(directory, name)?;
                (target == FileType::Directory).then_some(EntryKind::Directory)
            }
            _ => None,
        }
    }

    /// Queues a directory to be read, unless the options or a limit exclude it.
    fn enqueue(&mut self, parent: &OwnedFd, name: &Name, path: PathBuf, depth: u64) {
        if self.options.prune_hidden_directories && name.text.as_bytes().starts_with(b".") {
            return;
        }
        if self.options.follow_directory_symlinks {
            // If it was removed meanwhile, opening it reports the error.
            let stat = statat(parent, &name.text, AtFlags::empty());
            if stat.is_ok_and(|stat| !self.entered.insert(Identity::from(&stat))) {
                return;
            }
        }
        if self.directories == self.options.max_directories {
            self.result.truncated = true;
            return;
        }
        self.directories += 1;
        self.pending.push_back((path, depth));
    }

    fn report(
        &mut self,
        path: PathBuf,
        error: &FilesError,
        reason: Option<&str>,
    ) -> Result<(), WalkEnd> {
        let message = error.to_string();
        let texts = message.len() + reason.map_or(0, |reason| REASON_BYTES + reason.len());
        self.count_bytes(&path, ERROR_BYTES + texts)?;
        self.result.errors.push(WalkError {
            path,
            message,
            reason: reason.map(ToOwned::to_owned),
        });
        Ok(())
    }

    /// Adds the encoded size of a path as a URI and `others` to the size of the result.
    fn count_bytes(&mut self, path: &Path, others: usize) -> Result<(), WalkEnd> {
        let plain = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(byte);
        let bytes = path.as_os_str().as_bytes();
        let escaped = bytes.len() - bytes.iter().filter(plain).count();
        self.bytes += bytes.len() + 2 * escaped + others;
        if self.bytes > self.limits.walk_bytes {
            return Err(WalkEnd::LimitReached);
        }
        take_entry_memory(self.take_memory, bytes.len()).map_err(|_| WalkEnd::NoMemory)
    }
}
