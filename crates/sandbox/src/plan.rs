//! Plans: what a sandboxed process may do, in terms of this host's paths.

use std::path::{Path, PathBuf};

use outpost_types::sandbox::{Access, Network};
use serde::{Deserialize, Serialize};

/// A policy bound to this host's paths: the permissions of a sandboxed process, as plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Rules, a parent path before the paths below it. The last rule that covers a path applies. Paths
    /// without a rule don't exist inside.
    pub rules: Vec<Rule>,
    /// Symbolic links to paths with rules that have no rule themselves, such as `/lib` on most hosts.
    /// They have to be created inside.
    pub links: Vec<Link>,
    /// Network access.
    pub network: Network,
    /// Ports of the process's own loopback address on which the helper listens for the server. Without a
    /// network only.
    pub listen: Vec<u16>,
    /// The working directory.
    pub cwd: PathBuf,
    /// Parts of the policy that could not be applied, for the log and for `--explain`.
    pub warnings: Vec<Warning>,
}

impl Plan {
    /// Returns the access at a path; [`Access::Deny`] without a rule.
    #[must_use]
    pub fn access(&self, path: &Path) -> Access {
        let rule = self.covering(self.rules.len(), path);
        rule.map_or(Access::Deny, |rule| rule.access)
    }

    /// Returns the rule among the first `count` that applies at a path.
    pub(crate) fn covering(&self, count: usize, path: &Path) -> Option<&Rule> {
        let mut rules = self.rules[..count].iter().rev();
        rules.find(|rule| path.starts_with(&rule.path))
    }

    /// Makes all writable paths read-only. Nothing can be created then, so that absent paths need no
    /// placeholders.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        for rule in &mut self.rules {
            if rule.access == Access::Write {
                rule.access = Access::Read;
            }
        }
        self
    }
}

/// Returns whether a path belongs to a kernel file system. These are mounted anew or read-only; a policy
/// can't grant them, and nothing in them can be created or renamed.
pub(crate) fn is_kernel_path(path: &Path) -> bool {
    ["/proc", "/sys"].iter().any(|root| path.starts_with(root))
}

/// The access at and below a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The path: absolute, and canonical as far as it exists.
    pub path: PathBuf,
    /// The access.
    pub access: Access,
    /// The kind of file that was at the path.
    pub presence: PathState,
    /// The file at the path when the plan was made, if known. The mounted file must be the same.
    pub identity: Option<Identity>,
    /// The origin of the rule.
    pub origin: Origin,
}

impl Rule {
    /// Creates a rule without an identity.
    #[must_use]
    pub fn new(path: PathBuf, access: Access, presence: PathState, origin: Origin) -> Self {
        Rule {
            path,
            access,
            presence,
            identity: None,
            origin,
        }
    }
}

/// A file's identity: device and inode.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The device number of the file system.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
}

/// The kind of file that was at a path when the plan was made.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum PathState {
    /// A directory.
    Directory,
    /// Any other file.
    File,
    /// Nothing. Unless it is writable, it can't be created, and nothing is left on the host.
    Absent,
}

/// The origin of a rule.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An entry of the policy.
    Entry,
    /// A name that is protected below every writable root.
    Protected,
    /// A path that dynamic programs need to run.
    Minimal,
    /// A match of a pattern.
    Glob,
    /// A path of Outpost itself, such as its configuration.
    Own,
    /// A directory between a writable path and a rule below it. It becomes a mount point, so that it
    /// can't be renamed and replaced.
    Pinned,
}

/// A symbolic link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Its path, with a canonical parent.
    #[serde(with = "crate::serde_as_bytes")]
    pub path: PathBuf,
    /// Its target.
    #[serde(with = "crate::serde_as_bytes")]
    pub target: PathBuf,
}

/// A part of a policy that could not be applied as written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// An unknown special path.
    #[error("unknown special path {0:?} is ignored")]
    UnknownSpecial(String),
    /// `TMPDIR` isn't an absolute path.
    #[error("TMPDIR {0:?} is ignored: it is not an absolute path")]
    Tmpdir(PathBuf),
    /// A writable path with an optional grant doesn't exist.
    #[error("{0:?} is not made writable: it does not exist")]
    NothingToWrite(PathBuf),
    /// A path that the server's user can't reach.
    #[error("{0:?} is ignored: the server's user cannot reach it")]
    OutOfReach(PathBuf),
    /// A path in a directory that the server's user can't enter.
    #[error("{path:?} cannot be inspected: its entry applies to the whole directory {closed:?}")]
    Closed {
        /// The path of the entry.
        path: PathBuf,
        /// The directory.
        closed: PathBuf,
    },
    /// A directory whose path is too long to scan it for patterns.
    #[error("{0:?} is denied: its path is too long to scan it for patterns")]
    LongPath(PathBuf),
    /// A granted path that belongs to Outpost itself.
    #[error("{0:?} is not granted as requested: it is Outpost's own")]
    Own(PathBuf),
    /// A protected name is a symbolic link in a temporary directory, where any user may have put it.
    #[error("{0:?} is not protected: it is a symbolic link in a temporary directory")]
    TemporaryLink(PathBuf),
    /// A path below a file can be kept absent only by making the file read-only.
    #[error("{kept:?} is made read-only: {path:?} must not be created")]
    Blocked {
        /// The path that must stay absent.
        path: PathBuf,
        /// The file above it.
        kept: PathBuf,
        /// Whether the path is denied rather than read-only.
        denied: bool,
    },
}
