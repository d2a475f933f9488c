//! Built-in profiles.

use std::path::{Path, PathBuf};

use super::{Entry, FileSystem, Policy, SpecialPath};
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
    /// All built-in profiles.
    pub const ALL: [BuiltIn; 3] = [
        BuiltIn::ReadOnly,
        BuiltIn::Workspace,
        BuiltIn::DangerFullAccess,
    ];

    /// Returns the profile with this name, including its colon.
    #[must_use]
    pub fn named(name: &str) -> Option<BuiltIn> {
        BuiltIn::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Returns its name. It begins with a colon, which names of configured profiles can't.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BuiltIn::ReadOnly => ":read-only",
            BuiltIn::Workspace => ":workspace",
            BuiltIn::DangerFullAccess => ":danger-full-access",
        }
    }

    /// Returns the policy for a workspace with this root; none for full access.
    #[must_use]
    pub fn policy(self, cwd: &Path) -> Option<Policy> {
        match self {
            BuiltIn::ReadOnly => Some(Policy::read_only(cwd)),
            BuiltIn::Workspace => Some(Workspace::default().policy(cwd)),
            BuiltIn::DangerFullAccess => None,
        }
    }
}

/// Reads everything, and writes in some directories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workspace {
    /// Writable directories besides the working directory.
    pub writable_roots: Vec<PathBuf>,
    /// Whether network access is granted.
    pub network_access: bool,
    /// Whether `$TMPDIR` is not writable.
    pub exclude_tmpdir: bool,
    /// Whether `/tmp` is not writable.
    pub exclude_slash_tmp: bool,
}

impl Workspace {
    /// Returns the policy for work in this directory.
    #[must_use]
    pub fn policy(&self, cwd: &Path) -> Policy {
        let mut entries = vec![Entry::special(SpecialPath::Root, Access::Read)];
        entries.push(Entry::special(SpecialPath::project_roots(), Access::Write));
        if !self.exclude_slash_tmp {
            entries.push(Entry::special(SpecialPath::SlashTmp, Access::Write));
        }
        if !self.exclude_tmpdir {
            entries.push(Entry::special(SpecialPath::Tmpdir, Access::Write));
        }
        let more = self.writable_roots.iter().cloned();
        entries.extend(more.map(|root| Entry::path(root, Access::Write)));
        Policy {
            file_system: FileSystem::restricted(entries),
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
