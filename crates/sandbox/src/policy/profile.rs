//! Named profiles.

use std::{collections::BTreeMap, path::Path};

use super::{BuiltIn, Entry, EntryPath, FileSystem, Policy, Restricted};
use crate::Network;

/// A policy without a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The files that it grants.
    pub file_system: FileSystem,
    /// Whether it grants network access.
    pub network: Network,
}

impl Profile {
    /// Returns the policy for work in this directory.
    #[must_use]
    pub fn policy(&self, cwd: &Path) -> Policy {
        Policy {
            file_system: match &self.file_system {
                FileSystem::Restricted(files) => {
                    FileSystem::Restricted(with_literal_patterns(files))
                }
                FileSystem::Unrestricted => FileSystem::Unrestricted,
            },
            network: self.network,
            cwd: cwd.to_owned(),
            workspace_roots: vec![cwd.to_owned()],
        }
    }
}

/// Adds each pattern with brackets or braces also as a literal name. Both occur in names, so a denial
/// applies in either sense.
fn with_literal_patterns(files: &Restricted) -> Restricted {
    let mut files = files.clone();
    let literal = files.entries.iter().filter_map(|entry| match &entry.path {
        EntryPath::GlobPattern { pattern } => Some(Entry {
            path: EntryPath::GlobPattern {
                pattern: escaped(pattern)?,
            },
            ..entry.clone()
        }),
        EntryPath::Path { .. } | EntryPath::Special { .. } => None,
    });
    let literal: Vec<_> = literal.collect();
    files.entries.extend(literal);
    files
}

/// Escapes brackets and braces. Returns none if there are none, or the pattern has escapes already.
fn escaped(pattern: &str) -> Option<String> {
    if pattern.contains('\\') || !pattern.contains(['[', '{']) {
        return None;
    }
    let mut escaped = String::new();
    for character in pattern.chars() {
        if matches!(character, '[' | ']' | '{' | '}' | ',') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    Some(escaped)
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

    /// Returns the policy of a profile for work in this directory; none for full access.
    ///
    /// # Errors
    /// If no profile has this name.
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
    fn pattern_with_brackets_is_also_denied_as_a_literal_name() {
        let denied = ["/x[1]", "**/{a,b}/*", "/y\\[1\\]", "*.pem"];
        let entries = denied.map(|text| Entry::pattern(text.to_owned(), Access::Deny));
        let profile = Profile {
            file_system: FileSystem::Restricted(Restricted {
                entries: entries.to_vec(),
                glob_scan_max_depth: None,
            }),
            network: Network::Restricted,
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
