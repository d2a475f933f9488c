//! Policies and named profiles.
//!
//! [`planning`](crate::planning) binds a policy to the paths of a host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use outpost_types::sandbox::{
    Entry, EntryPath, FileSystem, InvalidEntryPath, MissingPathBehavior, Policy, Restricted,
    SpecialPath,
};

use crate::{Access, Network, planning::EACH_PROJECT_ROOT};

/// A profile that needs no configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    /// Reads everything, writes nothing, no network.
    ReadOnly,
    /// Writes below the workspace roots and the temporary directories, no network.
    Workspace,
    /// Not sandboxed.
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

    /// Returns the profile without a workspace; none for full access.
    fn profile(self) -> Option<Profile> {
        let policy = self.policy(Path::new("/"))?;
        Some(Profile {
            file_system: policy.file_system,
            network: policy.network,
            network_policy: None,
        })
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
        let network = if self.network_access {
            Network::Enabled
        } else {
            Network::Restricted
        };
        policy_for(cwd, FileSystem::restricted(entries), network)
    }
}

fn policy_for(cwd: &Path, file_system: FileSystem, network: Network) -> Policy {
    Policy {
        file_system,
        network,
        cwd: cwd.to_owned(),
        workspace_roots: vec![cwd.to_owned()],
    }
}

/// A policy without a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The files that it grants.
    pub file_system: FileSystem,
    /// Whether it grants network access.
    pub network: Network,
    /// The name of the network policy that a process has instead of `network`.
    pub network_policy: Option<String>,
}

impl Profile {
    /// Returns the policy for work in this directory.
    #[must_use]
    pub fn policy(&self, cwd: &Path) -> Policy {
        let mut file_system = self.file_system.clone();
        if let FileSystem::Restricted(files) = &mut file_system {
            add_literal_patterns(files);
        }
        policy_for(cwd, file_system, self.network)
    }

    /// Returns the policy for work in several directories. Relative patterns apply to each of them.
    #[must_use]
    pub fn policy_for_roots(&self, roots: &[PathBuf]) -> Policy {
        let mut policy = self.policy(Path::new("/"));
        policy.workspace_roots = roots.to_vec();
        if let FileSystem::Restricted(files) = &mut policy.file_system {
            for entry in &mut files.entries {
                if let EntryPath::GlobPattern { pattern } = &mut entry.path
                    && !pattern.starts_with('/')
                    && !pattern.starts_with(EACH_PROJECT_ROOT)
                {
                    pattern.insert_str(0, EACH_PROJECT_ROOT);
                }
            }
        }
        policy
    }
}

/// Adds each pattern with brackets or braces also as a literal name. Both occur in names, so a denial
/// applies in either sense.
fn add_literal_patterns(files: &mut Restricted) {
    let literal = files.entries.iter().filter_map(|entry| match &entry.path {
        EntryPath::GlobPattern { pattern } => {
            let pattern = escaped(pattern)?;
            let path = EntryPath::GlobPattern { pattern };
            Some(Entry {
                path,
                ..entry.clone()
            })
        }
        EntryPath::Path { .. } | EntryPath::Special { .. } => None,
    });
    let literal: Vec<_> = literal.collect();
    files.entries.extend(literal);
}

/// Escapes brackets and braces. Returns none if there are none, or the pattern has escapes already.
fn escaped(pattern: &str) -> Option<String> {
    if pattern.contains('\\') || !pattern.contains(['[', '{']) {
        return None;
    }
    let escape = |character| "[]{},".contains(character).then_some('\\');
    let characters = pattern.chars();
    let escaped = characters.flat_map(|character| escape(character).into_iter().chain([character]));
    Some(escaped.collect())
}

/// The profiles of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profiles {
    /// Configured profiles by name. No name begins with a colon.
    pub configured: BTreeMap<String, Profile>,
    /// The name of the profile for requests that name none.
    pub default: String,
}

impl Default for Profiles {
    fn default() -> Self {
        Profiles {
            configured: BTreeMap::new(),
            default: BuiltIn::Workspace.name().to_owned(),
        }
    }
}

impl Profiles {
    /// Returns whether a profile has this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        BuiltIn::named(name).is_some() || self.configured.contains_key(name)
    }

    /// Returns a profile; none for full access.
    ///
    /// # Errors
    /// If no profile has this name.
    pub fn profile(&self, name: &str) -> Result<Option<Profile>, UnknownProfile> {
        match (BuiltIn::named(name), self.configured.get(name)) {
            (Some(built_in), _) => Ok(built_in.profile()),
            (None, Some(configured)) => Ok(Some(configured.clone())),
            (None, None) => Err(UnknownProfile(name.chars().take(100).collect())),
        }
    }

    /// Returns the policy of a profile for work in this directory; none for full access.
    ///
    /// # Errors
    /// If no profile has this name.
    pub fn policy(&self, name: &str, cwd: &Path) -> Result<Option<Policy>, UnknownProfile> {
        Ok(self.profile(name)?.map(|profile| profile.policy(cwd)))
    }

    /// Returns the name of the network policy of a profile, if it has one.
    #[must_use]
    pub fn network_policy(&self, name: &str) -> Option<&str> {
        let configured = self.configured.get(name)?;
        configured.network_policy.as_deref()
    }
}

/// A name that no profile has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile {0:?}")]
pub struct UnknownProfile(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_with_brackets_is_also_denied_as_a_literal_name() {
        let denied = ["/x[1]", "**/{a,b}/*", "/y\\[1\\]", "*.pem"];
        let entries = denied.map(|text| Entry::pattern(text.to_owned(), Access::Deny));
        let profile = Profile {
            file_system: FileSystem::Restricted(Restricted {
                entries: entries.to_vec(),
                glob_scan_max_depth: None,
            }),
            network: Network::Restricted,
            network_policy: None,
        };
        let FileSystem::Restricted(files) = profile.policy(Path::new("/")).file_system else {
            panic!("the policy is restricted");
        };
        let all: Vec<_> = files
            .entries
            .iter()
            .map(|one| one.path.to_string())
            .collect();
        assert_eq!(
            all,
            [
                "/x[1]",
                "**/{a,b}/*",
                "/y\\[1\\]",
                "*.pem",
                "/x\\[1\\]",
                "**/\\{a\\,b\\}/*"
            ]
        );
    }
}
