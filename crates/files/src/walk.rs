//! What is below a directory, level by level.

use std::collections::{HashSet, VecDeque};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};

use crate::gaps::Gaps;
use crate::identity::{Identity, file_type};
use crate::names::{Name, first_names, target_of};
use crate::{Files, FilesError, Limits};

/// How far a walk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkOptions {
    /// How deep a directory may be that is looked into; the root is at 0.
    pub max_depth: u64,
    /// How many directories are looked into.
    pub max_directories: u64,
    /// How many names are looked at.
    pub max_entries: u64,
    /// A link to a directory counts as one.
    pub follow_directory_symlinks: bool,
    /// A directory whose name starts with a dot is only named.
    pub prune_hidden_directories: bool,
}

/// What a walk found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// Directories and files, level by level, by name in each directory; the root isn't among them.
    pub entries: Vec<WalkEntry>,
    /// What couldn't be looked at.
    pub errors: Vec<WalkError>,
    /// A limit was met, and there is more.
    pub truncated: bool,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkEntry {
    /// The root's path as it was given, with the names below it.
    pub path: PathBuf,
    /// What it is.
    pub kind: EntryKind,
}

/// What a walk tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
}

/// Something that couldn't be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkError {
    /// Where it is. A name that isn't UTF-8 is in here in a readable form.
    pub path: PathBuf,
    /// Why.
    pub message: String,
}

/// What is said of a name that isn't UTF-8: clients have no way to write it.
const NOT_UTF8: &str = "file name is not valid UTF-8";

/// What an answer takes when nothing was found,
const ANSWER_BYTES: usize =
    r#"{"id":18446744073709551615,"result":{"entries":[],"errors":[],"truncated":false}}"#.len();
/// and what each thing that was found takes besides its path: a file,
const FILE_BYTES: usize = r#"{"path":"file://","kind":"file"},"#.len();
/// a directory,
const DIRECTORY_BYTES: usize = r#"{"path":"file://","kind":"directory"},"#.len();
/// and an error, besides its message too. No message has anything in it that JSON would escape.
const ERROR_BYTES: usize = r#"{"path":"file://","message":""},"#.len();

impl WalkOptions {
    fn check(&self, limits: &Limits) -> Result<(), FilesError> {
        if self.max_directories == 0 || self.max_entries == 0 {
            return Err(FilesError::WalkOfNothing);
        }
        if self.max_depth > limits.walk_depth
            || self.max_directories > limits.walk_directories
            || self.max_entries > limits.walk_entries
        {
            return Err(FilesError::WalkTooFar {
                depth: limits.walk_depth,
                directories: limits.walk_directories,
                entries: limits.walk_entries,
            });
        }
        Ok(())
    }
}

impl Files {
    /// What is below `root`. A root that is no directory has nothing below it.
    pub fn walk(&self, root: &Path, options: WalkOptions) -> Result<Walk, FilesError> {
        self.walk_but(root, options, &Gaps::default())
    }

    /// The same without names that are to be left out.
    pub(crate) fn walk_but(
        &self,
        root: &Path,
        options: WalkOptions,
        gaps: &Gaps,
    ) -> Result<Walk, FilesError> {
        options.check(&self.limits)?;
        // A link that leads nowhere is missing like anything else.
        let target = statat(CWD, root, AtFlags::empty())?;
        let itself = statat(CWD, root, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_link = file_type(&itself) == FileType::Symlink;
        if file_type(&target) != FileType::Directory
            || (is_link && !options.follow_directory_symlinks)
        {
            return Ok(Walk::default());
        }
        let mut walker = Walker {
            limits: self.limits,
            options,
            gaps,
            found: Walk::default(),
            waiting: VecDeque::from([(root.to_owned(), 0)]),
            entered: HashSet::from([Identity::from(&target)]),
            directories: 1,
            looked_at: 0,
            bytes: ANSWER_BYTES,
        };
        // Only a limit ends it before there is nothing left.
        while let Some((directory, depth)) = walker.waiting.pop_front() {
            if walker.look_into(&directory, depth).is_err() {
                walker.found.truncated = true;
                break;
            }
        }
        Ok(walker.found)
    }
}

impl EntryKind {
    /// What an entry takes besides its path.
    fn bytes(self) -> usize {
        match self {
            Self::Directory => DIRECTORY_BYTES,
            Self::File => FILE_BYTES,
        }
    }
}

/// A limit was met that leaves room for nothing more.
struct Full;

struct Walker<'a> {
    limits: Limits,
    options: WalkOptions,
    gaps: &'a Gaps,
    found: Walk,
    /// Directories that were named and not looked into yet.
    waiting: VecDeque<(PathBuf, u64)>,
    /// Those that were or will be looked into, where links could lead there again.
    entered: HashSet<Identity>,
    directories: u64,
    looked_at: u64,
    bytes: usize,
}

impl Walker<'_> {
    fn look_into(&mut self, directory: &Path, depth: u64) -> Result<(), Full> {
        // One more than will be looked at shows that there is more.
        let left = self.options.max_entries - self.looked_at;
        let enough = usize::try_from(left).map_or(usize::MAX, |left| left.saturating_add(1));
        let read = self.open(directory, depth).and_then(|open| {
            let names = first_names(&open, enough, self.gaps)?;
            Ok((open, names))
        });
        let (open, names) = match read {
            Ok(read) => read,
            Err(error) => return self.report(directory.to_owned(), error.to_string()),
        };
        for name in names {
            if self.looked_at == self.options.max_entries {
                return Err(Full);
            }
            self.looked_at += 1;
            if name.text.to_str().is_none() {
                let readable = directory.join(name.text.to_string_lossy().as_ref());
                self.report(readable, NOT_UTF8.to_owned())?;
                continue;
            }
            let Some(kind) = self.kind_of(&open, &name) else {
                continue;
            };
            let path = directory.join(&name.text);
            self.make_room(&path, kind.bytes())?;
            self.found.entries.push(WalkEntry {
                path: path.clone(),
                kind,
            });
            if kind == EntryKind::Directory && depth < self.options.max_depth {
                self.plan(&open, &name, path, depth + 1);
            }
        }
        Ok(())
    }

    /// What was no link when its name was read must not be one now.
    fn open(&self, directory: &Path, depth: u64) -> Result<OwnedFd, FilesError> {
        let mut flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if depth > 0 && !self.options.follow_directory_symlinks {
            flags |= OFlags::NOFOLLOW;
        }
        Ok(openat(CWD, directory, flags, Mode::empty())?)
    }

    /// What a name counts as; none if it is left out.
    fn kind_of(&self, directory: &OwnedFd, name: &Name) -> Option<EntryKind> {
        match name.kind {
            FileType::Directory => Some(EntryKind::Directory),
            FileType::RegularFile => Some(EntryKind::File),
            FileType::Symlink if self.options.follow_directory_symlinks => {
                let target = target_of(directory, name)?;
                (target == FileType::Directory).then_some(EntryKind::Directory)
            }
            _ => None,
        }
    }

    /// Looks into a directory later, unless there is a reason not to.
    fn plan(&mut self, parent: &OwnedFd, name: &Name, path: PathBuf, depth: u64) {
        if self.options.prune_hidden_directories && name.text.as_bytes().starts_with(b".") {
            return;
        }
        if self.options.follow_directory_symlinks {
            // One that has gone meanwhile is reported when it is opened.
            let stat = statat(parent, &name.text, AtFlags::empty());
            if stat.is_ok_and(|stat| !self.entered.insert(Identity::from(&stat))) {
                return;
            }
        }
        if self.directories == self.options.max_directories {
            self.found.truncated = true;
            return;
        }
        self.directories += 1;
        self.waiting.push_back((path, depth));
    }

    fn report(&mut self, path: PathBuf, message: String) -> Result<(), Full> {
        self.make_room(&path, ERROR_BYTES + message.len())?;
        self.found.errors.push(WalkError { path, message });
        Ok(())
    }

    /// Counts what a path takes when it is written as a URI, and what is around it.
    fn make_room(&mut self, path: &Path, others: usize) -> Result<(), Full> {
        let plain = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(byte);
        let bytes = path.as_os_str().as_bytes();
        let escaped = bytes.len() - bytes.iter().filter(plain).count();
        self.bytes += bytes.len() + 2 * escaped + others;
        match self.bytes > self.limits.walk_bytes {
            true => Err(Full),
            false => Ok(()),
        }
    }
}
