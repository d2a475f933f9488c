//! Policies that somebody gave a name.

use std::{collections::BTreeMap, path::Path};

use super::{BuiltIn, Entry, FileSystem, Place, Policy, Restricted};
use crate::Network;

/// A policy that isn't about any workspace yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Which files it grants.
    pub file_system: FileSystem,
    /// Whether it grants the network.
    pub network: Network,
}

impl Profile {
    /// The policy, for work in this directory.
    #[must_use]
    pub fn policy(&self, cwd: &Path) -> Policy {
        Policy {
            file_system: match &self.file_system {
                FileSystem::Restricted(files) => FileSystem::Restricted(in_both_senses(files)),
                FileSystem::Unrestricted => FileSystem::Unrestricted,
            },
            network: self.network,
            cwd: cwd.to_owned(),
            workspace_roots: vec![cwd.to_owned()],
        }
    }
}

/// People write names with brackets and braces, and patterns with them. What is denied in either
/// sense is denied.
fn in_both_senses(files: &Restricted) -> Restricted {
    let mut files = files.clone();
    let named = files.entries.iter().filter_map(|entry| match &entry.place {
        Place::Pattern(text) => Some(Entry {
            place: Place::Pattern(by_name(text)?),
            ..entry.clone()
        }),
        Place::Path(_) | Place::Special(_) => None,
    });
    let named: Vec<_> = named.collect();
    files.entries.extend(named);
    files
}

/// A pattern in which brackets and braces stand for themselves; none if there are none, or somebody
/// has said with a backslash what is meant.
fn by_name(pattern: &str) -> Option<String> {
    if pattern.contains('\\') || !pattern.contains(['[', '{']) {
        return None;
    }
    let mut named = String::new();
    for letter in pattern.chars() {
        if matches!(letter, '[' | ']' | '{' | '}' | ',') {
            named.push('\\');
        }
        named.push(letter);
    }
    Some(named)
}

/// All profiles of a server, and the one that counts where nobody names one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profiles {
    /// Those that were configured, by name. A name that begins with a colon can't be among them.
    pub configured: BTreeMap<String, Profile>,
    /// The name of the one that counts.
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
    /// Whether there is one with this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        BuiltIn::named(name).is_some() || self.configured.contains_key(name)
    }

    /// What a profile asks for in this directory: a policy, or nothing for full access.
    ///
    /// # Errors
    /// When there is none with this name.
    pub fn policy(&self, name: &str, cwd: &Path) -> Result<Option<Policy>, UnknownProfile> {
        if let Some(built_in) = BuiltIn::named(name) {
            return Ok(built_in.policy(cwd));
        }
        let configured = self.configured.get(name);
        let profile = configured.ok_or_else(|| UnknownProfile(name.chars().take(100).collect()))?;
        Ok(Some(profile.policy(cwd)))
    }
}

/// A name that no profile has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile {0:?}")]
pub struct UnknownProfile(String);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Access;

    #[test]
    fn a_name_with_brackets_is_denied_as_a_pattern_and_as_a_name() {
        let denied = ["/x[1]", "**/{a,b}/*", "/y\\[1\\]", "*.pem"];
        let entries = denied.map(|text| Entry::new(Place::Pattern(text.to_owned()), Access::Deny));
        let profile = Profile {
            file_system: FileSystem::Restricted(Restricted {
                entries: entries.to_vec(),
                glob_scan_max_depth: None,
            }),
            network: Network::Restricted,
        };
        let FileSystem::Restricted(files) = profile.policy(Path::new("/")).file_system else {
            panic!("it is restricted");
        };
        let all: Vec<_> = files
            .entries
            .iter()
            .map(|one| one.place.to_string())
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
