//! Resolves symbolic links.

use std::{
    collections::VecDeque,
    ffi::OsString,
    io,
    path::{Component, Path, PathBuf},
};

use super::{FileSystemView, PathKind, PlanError};
use crate::{Link, PathState};

/// The kernel's limit, see path_resolution(7).
const MAX_LINKS: usize = 40;

/// A resolved path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    /// The path without symbolic links, as far as it exists.
    pub(super) path: PathBuf,
    pub(super) end: End,
    /// The symbolic links that were followed.
    pub(super) links: Vec<Link>,
}

/// The end of a resolved path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Directory,
    File,
    /// Nothing; this is the first missing component.
    MissingFrom(PathBuf),
    /// Nothing, because this component isn't a directory.
    BlockedBy(PathBuf),
    /// Unknown, because the server's user can't enter this directory. Its owner can change that.
    OutOfReach {
        closed: PathBuf,
    },
}

impl End {
    pub(super) fn presence(&self) -> PathState {
        match self {
            End::Directory => PathState::Directory,
            End::File => PathState::File,
            End::MissingFrom(_) | End::BlockedBy(_) | End::OutOfReach { .. } => PathState::Absent,
        }
    }
}

/// Resolves an absolute path.
pub(super) fn resolve(view: &dyn FileSystemView, path: &Path) -> Result<Resolved, PlanError> {
    let mut rest: VecDeque<OsString> = components(path).collect();
    let mut here = PathBuf::from("/");
    let mut end = End::Directory;
    let mut links = Vec::new();
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            here.pop();
            end = End::Directory;
            continue;
        }
        if end == End::File {
            let blocked_by = here.clone();
            here.push(&name);
            here.extend(rest);
            end = End::BlockedBy(blocked_by);
            break;
        }
        here.push(&name);
        match view.look(&here) {
            Ok(PathKind::Directory) => end = End::Directory,
            Ok(PathKind::File) => end = End::File,
            Ok(PathKind::Absent) => {
                end = End::MissingFrom(here.clone());
                here.extend(rest);
                break;
            }
            Ok(PathKind::Link(target)) => {
                if links.len() == MAX_LINKS {
                    return Err(PlanError::Links(path.to_owned()));
                }
                for name in components(&target).rev() {
                    rest.push_front(name);
                }
                links.push(Link {
                    path: here.clone(),
                    target: target.clone(),
                });
                here.pop();
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                end = End::Directory;
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let closed = here.parent().unwrap_or(&here).to_owned();
                end = End::OutOfReach { closed };
                here.extend(rest);
                break;
            }
            Err(error) => return Err(PlanError::Inspect { path: here, error }),
        }
    }
    Ok(Resolved {
        path: here,
        end,
        links,
    })
}

fn components(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + '_ {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}
