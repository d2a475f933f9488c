//! Policies that somebody gave a name.

use std::{collections::BTreeMap, path::Path};

use super::{BuiltIn, FileSystem, Policy};
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
            file_system: self.file_system.clone(),
            network: self.network,
            cwd: cwd.to_owned(),
            workspace_roots: vec![cwd.to_owned()],
        }
    }
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
