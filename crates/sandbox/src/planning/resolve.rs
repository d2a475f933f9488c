//! Where a path really leads.

use std::{
    collections::VecDeque,
    ffi::OsString,
    io,
    path::{Component, Path, PathBuf},
};

use super::{Kind, PlanError, View};
use crate::{Link, Presence};

/// As many as the kernel follows.
const MAX_LINKS: usize = 40;

/// What became of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    /// Without links, as far as it exists.
    pub(super) path: PathBuf,
    pub(super) end: End,
    /// The links that were followed.
    pub(super) links: Vec<Link>,
}

/// How far a path exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Directory,
    File,
    /// Nothing is there from this component on.
    MissingFrom(PathBuf),
    /// Nothing is there, because this is no directory.
    BlockedBy(PathBuf),
    /// We may not look at it, since this directory on the way lets nobody through who runs as we do.
    /// Its owner can change that.
    OutOfReach {
        closed: PathBuf,
    },
}

impl End {
    pub(super) fn presence(&self) -> Presence {
        match self {
            End::Directory => Presence::Directory,
            End::File => Presence::File,
            End::MissingFrom(_) | End::BlockedBy(_) | End::OutOfReach { .. } => Presence::Absent,
        }
    }
}

/// Follows an absolute path through all of its links.
pub(super) fn resolve(view: &dyn View, path: &Path) -> Result<Resolved, PlanError> {
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
            Ok(Kind::Directory) => end = End::Directory,
            Ok(Kind::File) => end = End::File,
            Ok(Kind::Absent) => {
                end = End::MissingFrom(here.clone());
                here.extend(rest);
                break;
            }
            Ok(Kind::Link(target)) => {
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
            Err(why) if why.kind() == io::ErrorKind::PermissionDenied => {
                let closed = here.parent().unwrap_or(&here).to_owned();
                end = End::OutOfReach { closed };
                here.extend(rest);
                break;
            }
            Err(why) => return Err(PlanError::Look { path: here, why }),
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
