//! Outpost's own files: configuration, runtime directory, programs.
//!
//! A sandboxed process that can change them decides how the next process is sandboxed, or poses as the
//! user's server. So their rules apply whatever the policy grants.

use std::path::{Path, PathBuf};

use super::Planner;
use crate::{
    Access, Origin, PathState, Rule, Warning,
    planning::{
        LinkCreator, PlanError,
        resolve::{End, Resolved, resolve},
        unreachable::UnreachableEntry,
    },
};

/// A path of Outpost itself, which no sandboxed process may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPath {
    /// The path. Absolute.
    pub path: PathBuf,
    /// The access that remains at and below the path: read or deny.
    pub access: Access,
    /// Whether it is a directory that is created, private to the user, where a sandboxed process could
    /// create it otherwise.
    pub creates: bool,
    /// Whether it needs no protection while it is absent. A sandboxed process may create it then.
    pub only_if_present: bool,
}

impl OwnPath {
    /// Returns a path that stays readable.
    #[must_use]
    pub fn read_only(path: PathBuf) -> Self {
        OwnPath {
            path,
            access: Access::Read,
            creates: false,
            only_if_present: false,
        }
    }
}

impl Planner<'_> {
    /// Adds the rules for Outpost's own paths.
    pub(super) fn add_own_paths(&mut self, own: &[OwnPath]) -> Result<(), PlanError> {
        own.iter().try_for_each(|own| self.add_own_path(own))
    }

    fn add_own_path(&mut self, own: &OwnPath) -> Result<(), PlanError> {
        let Resolved { path, end, links } = resolve(self.view, &own.path)?;
        let is_absent = matches!(end, End::MissingFrom(_) | End::BlockedBy(_));
        if own.only_if_present && is_absent {
            return Ok(());
        }
        if let Some(link) = links.iter().find(|link| self.table.is_writable(&link.path)) {
            let link = link.path.clone();
            // Outpost doesn't trust another user's link, and this user can't replace it. An error would
            // let any user of the host block all starts.
            if self.creator(&link)? == LinkCreator::OtherUser {
                self.warnings.push(Warning::TemporaryLink(link));
                return Ok(());
            }
            let path = own.path.clone();
            return Err(PlanError::LinkInWritable { link, path });
        }
        match end {
            End::Directory | End::File => self.limit(path, own.access, end.presence()),
            End::MissingFrom(first) => {
                let mask = Rule::new(first, own.access, PathState::Absent, Origin::Own);
                self.masks.push(mask);
            }
            End::BlockedBy(kept) => {
                let mask = Rule::new(kept, Access::Read, PathState::File, Origin::Own);
                self.masks.push(mask);
            }
            End::OutOfReach { closed } => self.closed.push(UnreachableEntry {
                directory: closed,
                path,
                access: own.access,
                origin: Origin::Own,
            }),
        }
        Ok(())
    }

    /// Limits the access at and below a path, if more is granted.
    fn limit(&mut self, path: PathBuf, access: Access, presence: PathState) {
        let exceeds = |granted: Access| match access {
            Access::Deny => granted != Access::Deny,
            Access::Read | Access::Write => granted == Access::Write,
        };
        let covering = self.table.covering(&path).map(|rule| rule.access);
        let removed = self.table.remove_below(&path, exceeds);
        if covering.is_some_and(exceeds) || removed {
            self.table
                .add(Rule::new(path.clone(), access, presence, Origin::Own));
        }
        if removed {
            self.warnings.push(Warning::Own(path));
        }
    }

    /// Returns who may have created a link.
    pub(super) fn creator(&self, link: &Path) -> Result<LinkCreator, PlanError> {
        self.view
            .link_creator(link)
            .map_err(|error| PlanError::Inspect {
                path: link.to_owned(),
                error,
            })
    }
}
