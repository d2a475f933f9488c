//! What isn't what it looks like, here or inside.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::request::Request;
use crate::gaps::Gaps;
use crate::{FilesError, Links};

/// Where something stands that isn't there: to hide what is, or so that nothing can be made.
/// Paths without links. Who keeps it so is somebody else; here it is only told as what it means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    /// What may not even be looked at.
    pub denied: Vec<PathBuf>,
    /// What doesn't exist, and can't be made.
    pub absent: Vec<PathBuf>,
    /// What doesn't exist, as long as what holds its place there is empty: who makes it has it.
    pub held: Vec<PathBuf>,
}

/// What a path means to an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// What is there.
    Target,
    /// What the name itself stands for: a link is one.
    Name,
    /// What will be there.
    Place,
}

impl Masks {
    /// What of it an operation could come upon, and is so. Only that is looked at: the others may be
    /// anywhere, and many.
    pub(super) fn about(mut self, request: &Request, is_held: fn(&Path) -> bool) -> Self {
        if self.held.is_empty() {
            return self;
        }
        let ends: Vec<_> = subjects(request)
            .into_iter()
            .filter_map(|subject| subject.end())
            .collect();
        self.held.retain(|held| {
            let concerned = match request {
                Request::ReadDirectory(_) => {
                    ends.iter().any(|end| held.parent() == Some(end.as_path()))
                }
                Request::Walk(_, options) if options.follow_directory_symlinks => true,
                Request::Walk(..) | Request::Copy(..) => {
                    ends.iter().any(|end| held.starts_with(end))
                }
                _ => false,
            };
            (concerned || ends.contains(held)) && is_held(held)
        });
        self
    }

    /// Refuses what is asked about something that isn't what it looks like.
    pub(super) fn check(&self, request: &Request) -> Result<(), FilesError> {
        if self == &Masks::default() {
            return Ok(());
        }
        for subject in subjects(request) {
            let Some(end) = subject.end() else {
                continue;
            };
            if self.denied.contains(&end) {
                return Err(Errno::ACCESS.into());
            }
            let used = subject.used;
            if self.absent.contains(&end) {
                return Err(match used {
                    Use::Target | Use::Name => Errno::NOENT.into(),
                    Use::Place => Errno::ROFS.into(),
                });
            }
            if used != Use::Place && self.held.contains(&end) {
                return Err(Errno::NOENT.into());
            }
        }
        Ok(())
    }

    /// Whether what is to be made somewhere will be where a place is held.
    pub(super) fn holds(&self, path: &Path, links: Links) -> bool {
        if self.held.is_empty() {
            return false;
        }
        let used = Use::Place;
        let end = Subject { path, links, used }.end();
        end.is_some_and(|end| self.held.contains(&end))
    }

    /// What no listing has.
    pub(super) fn gaps(&self) -> Gaps {
        let missing = self.absent.iter().chain(&self.held);
        Gaps::at(missing.map(PathBuf::as_path))
    }
}

/// A path that a request names, and what for.
struct Subject<'a> {
    path: &'a Path,
    links: Links,
    used: Use,
}

impl Subject<'_> {
    fn end(&self) -> Option<PathBuf> {
        match self.links {
            Links::Follow => end_of(self.path, self.used),
            // With a link in it, it is refused for that.
            Links::Refuse => Some(self.path.to_owned()),
        }
    }
}

fn subjects(request: &Request) -> Vec<Subject<'_>> {
    let subject = |path, links, used| Subject { path, links, used };
    match request {
        Request::OpenToRead(path, links) | Request::Metadata(path, links) => {
            vec![subject(path, *links, Use::Target)]
        }
        Request::Canonicalize(path) | Request::ReadDirectory(path) | Request::Walk(path, _) => {
            vec![subject(path, Links::Follow, Use::Target)]
        }
        Request::OpenToWrite(path, links) | Request::CreateDirectory(path, _, links) => {
            vec![subject(path, *links, Use::Place)]
        }
        Request::CreateStream(path) => vec![subject(path, Links::Follow, Use::Place)],
        Request::Remove(path, how) => vec![subject(path, how.links, Use::Name)],
        Request::Copy(source, destination, _) => vec![
            subject(source, Links::Follow, Use::Name),
            subject(destination, Links::Follow, Use::Place),
        ],
        Request::Commit => Vec::new(),
    }
}

/// Where a path leads; none where that can't be told, which the operation will find out as well.
fn end_of(path: &Path, used: Use) -> Option<PathBuf> {
    if used != Use::Name
        && let Ok(there) = path.canonicalize()
    {
        return Some(there);
    }
    let name = path.file_name()?;
    Some(path.parent()?.canonicalize().ok()?.join(name))
}
