//! What isn't what it looks like inside.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::request::Request;
use crate::{FilesError, Links};

/// Where something stands inside that isn't there: to hide what is, or so that nothing can be made.
/// Paths without links. Who keeps it so is somebody else; here it is only told as what it means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    /// What may not even be looked at.
    pub denied: Vec<PathBuf>,
    /// What doesn't exist, and can't be made.
    pub absent: Vec<PathBuf>,
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
    /// Refuses what is asked about something that isn't what it looks like.
    pub(super) fn check(&self, request: &Request) -> Result<(), FilesError> {
        if self.denied.is_empty() && self.absent.is_empty() {
            return Ok(());
        }
        match request {
            Request::OpenToRead(path, links) | Request::Metadata(path, links) => {
                self.check_path(path, *links, Use::Target)
            }
            Request::Canonicalize(path) | Request::ReadDirectory(path) | Request::Walk(path, _) => {
                self.check_path(path, Links::Follow, Use::Target)
            }
            Request::OpenToWrite(path, links) | Request::CreateDirectory(path, _, links) => {
                self.check_path(path, *links, Use::Place)
            }
            Request::CreateStream(path) => self.check_path(path, Links::Follow, Use::Place),
            Request::Remove(path, how) => self.check_path(path, how.links, Use::Name),
            Request::Copy(source, destination, _) => {
                self.check_path(source, Links::Follow, Use::Name)?;
                self.check_path(destination, Links::Follow, Use::Place)
            }
            Request::Commit => Ok(()),
        }
    }

    fn check_path(&self, path: &Path, links: Links, used: Use) -> Result<(), FilesError> {
        let there = match links {
            Links::Follow => end_of(path, used),
            // With a link in it, it is refused for that.
            Links::Refuse => Some(path.to_owned()),
        };
        let Some(there) = there else {
            return Ok(());
        };
        if self.denied.contains(&there) {
            return Err(Errno::ACCESS.into());
        }
        if self.absent.contains(&there) {
            return Err(match used {
                Use::Target | Use::Name => Errno::NOENT.into(),
                Use::Place => Errno::ROFS.into(),
            });
        }
        Ok(())
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
