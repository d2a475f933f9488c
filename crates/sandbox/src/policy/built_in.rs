//! Policies that have a name everywhere.

use std::path::{Path, PathBuf};

use super::{Entry, FileSystem, Place, Policy, Restricted, Special};
use crate::{Access, Network};

/// A profile that needs no configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    /// Reads everything, writes nothing, no network.
    ReadOnly,
    /// Writes below the workspace roots and the temporary directories, no network.
    Workspace,
    /// Not confined.
    DangerFullAccess,
}

impl BuiltIn {
    /// All of them.
    pub const ALL: [BuiltIn; 3] = [
        BuiltIn::ReadOnly,
        BuiltIn::Workspace,
        BuiltIn::DangerFullAccess,
    ];

    /// The one with this name, colon included.
    #[must_use]
    pub fn named(name: &str) -> Option<BuiltIn> {
        BuiltIn::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Its name, which begins with a colon so that no configured one is like it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BuiltIn::ReadOnly => ":read-only",
            BuiltIn::Workspace => ":workspace",
            BuiltIn::DangerFullAccess => ":danger-full-access",
        }
    }

    /// What it asks for in a workspace with this one root; nothing for full access.
    #[must_use]
    pub fn policy(self, cwd: &Path) -> Option<Policy> {
        match self {
            BuiltIn::ReadOnly => Some(Policy::read_only(cwd)),
            BuiltIn::Workspace => Some(Workspace::default().policy(cwd)),
            BuiltIn::DangerFullAccess => None,
        }
    }
}

impl Policy {
    /// Reads everything, writes nothing, no network.
    #[must_use]
    pub fn read_only(cwd: &Path) -> Policy {
        Policy {
            file_system: FileSystem::Restricted(Restricted {
                entries: vec![special(Special::Root, Access::Read)],
                glob_scan_max_depth: None,
            }),
            network: Network::Restricted,
            cwd: cwd.to_owned(),
            workspace_roots: vec![cwd.to_owned()],
        }
    }
}

/// Reads everything, and writes below some folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workspace {
    /// Folders besides the working directory.
    pub writable_roots: Vec<PathBuf>,
    /// Whether there is a network.
    pub network_access: bool,
    /// Whether `$TMPDIR` is not among the folders.
    pub exclude_tmpdir: bool,
    /// Whether `/tmp` is not among the folders.
    pub exclude_slash_tmp: bool,
}

impl Workspace {
    /// The policy, for work in this directory.
    #[must_use]
    pub fn policy(&self, cwd: &Path) -> Policy {
        let mut entries = vec![special(Special::Root, Access::Read)];
        let below = PathBuf::new();
        entries.push(special(Special::ProjectRoots { below }, Access::Write));
        if !self.exclude_slash_tmp {
            entries.push(special(Special::SlashTmp, Access::Write));
        }
        if !self.exclude_tmpdir {
            entries.push(special(Special::Tmpdir, Access::Write));
        }
        let more = self.writable_roots.iter().cloned();
        entries.extend(more.map(|root| Entry::new(Place::Path(root), Access::Write)));
        Policy {
            file_system: FileSystem::Restricted(Restricted {
                entries,
                glob_scan_max_depth: None,
            }),
            network: if self.network_access {
                Network::Enabled
            } else {
                Network::Restricted
            },
            cwd: cwd.to_owned(),
            workspace_roots: vec![cwd.to_owned()],
        }
    }
}

fn special(special: Special, access: Access) -> Entry {
    Entry::new(Place::Special(special), access)
}
