//! Paths at which the sandbox put something else than the host has there.

use std::path::{Path, PathBuf};

use outpost_types::{ListingScope, PathUse, Symlinks};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::FilesError;
use crate::directory_entries::HiddenNames;
use crate::worker::Call;

/// Paths, without symbolic links, that are mounted over or occupied by a placeholder.
///
/// The sandbox enforces access. This type only makes operations report what the mask means, such as
/// "no such file" for a placeholder directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathMasks {
    /// Access is denied.
    #[serde(with = "path_list")]
    pub denied: Vec<PathBuf>,
    /// The path does not exist and cannot be created.
    #[serde(with = "path_list")]
    pub absent: Vec<PathBuf>,
    /// An empty placeholder directory that counts as missing and may be created.
    #[serde(with = "path_list")]
    pub placeholders: Vec<PathBuf>,
}

impl PathMasks {
    /// Keeps the placeholders that the call can meet and that still are placeholders. Others are not
    /// inspected: there may be many, anywhere.
    pub(crate) fn relevant_to(mut self, call: &Call, is_placeholder: fn(&Path) -> bool) -> Self {
        if self.placeholders.is_empty() {
            return self;
        }
        let listing = match call {
            Call::Perform(op) => op.listing(),
            Call::Open { .. } | Call::CreateStream { .. } | Call::Commit => ListingScope::Nothing,
        };
        let used: Vec<_> = used_paths(call).map(|(path, _)| path).collect();
        self.placeholders.retain(|placeholder| {
            let is_met = used.iter().any(|path| match listing {
                ListingScope::Nothing => placeholder == path,
                ListingScope::Directory => {
                    placeholder == path || placeholder.parent() == Some(path)
                }
                ListingScope::Tree | ListingScope::Anywhere => placeholder.starts_with(path),
            });
            (is_met || listing == ListingScope::Anywhere) && is_placeholder(placeholder)
        });
        self
    }

    /// Fails if the call uses a masked path.
    pub(crate) fn check(&self, call: &Call) -> Result<(), FilesError> {
        if self == &PathMasks::default() {
            return Ok(());
        }
        for (path, path_use) in used_paths(call) {
            let creates = path_use == PathUse::Create;
            if self.denied.contains(&path) {
                return Err(Errno::ACCESS.into());
            }
            if self.absent.contains(&path) {
                let errno = if creates { Errno::ROFS } else { Errno::NOENT };
                return Err(errno.into());
            }
            if !creates && self.placeholders.contains(&path) {
                return Err(Errno::NOENT.into());
            }
        }
        Ok(())
    }

    /// Whether a new file at this path would take the place of a placeholder.
    pub(crate) fn is_placeholder(&self, path: &Path, symlinks: Symlinks) -> bool {
        if self.placeholders.is_empty() {
            return false;
        }
        let path = resolved(path, symlinks, PathUse::Create);
        path.is_some_and(|path| self.placeholders.contains(&path))
    }

    /// The names that directory listings leave out.
    pub(crate) fn omitted_names(&self) -> HiddenNames {
        let missing = self.absent.iter().chain(&self.placeholders);
        HiddenNames::new(missing.map(PathBuf::as_path))
    }
}

/// The paths of a call without symbolic links.
fn used_paths(call: &Call) -> impl Iterator<Item = (PathBuf, PathUse)> {
    let used = call.used_paths().into_iter();
    used.filter_map(|used| {
        Some((
            resolved(used.path, used.symlinks, used.path_use)?,
            used.path_use,
        ))
    })
}

/// The path without symbolic links; none if it cannot be resolved, in which case the operation
/// fails as well.
fn resolved(path: &Path, symlinks: Symlinks, path_use: PathUse) -> Option<PathBuf> {
    if symlinks == Symlinks::Reject {
        // The operation itself rejects the path if it contains a link.
        return Some(path.to_owned());
    }
    if path_use != PathUse::Entry
        && let Ok(path) = path.canonicalize()
    {
        return Some(path);
    }
    let name = path.file_name()?;
    Some(path.parent()?.canonicalize().ok()?.join(name))
}

/// Serializes paths as URIs, because serde rejects a path that is not UTF-8.
mod path_list {
    use std::path::PathBuf;

    use outpost_types::PathUri;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        paths: &[PathBuf],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| PathUri::from_path(path)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let paths = Vec::<PathUri>::deserialize(deserializer)?.into_iter();
        Ok(paths.map(PathUri::into_path).collect())
    }
}
