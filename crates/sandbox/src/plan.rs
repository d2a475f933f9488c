//! What a confined process may do, in the paths of this host.

use std::path::{Path, PathBuf};

/// What a confined process may do, bound to this host's paths: made from a policy, enforced by the
/// stages. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// A more general path comes before a more specific one, and the last rule that covers a path
    /// decides. What no rule covers doesn't exist inside.
    pub rules: Vec<Rule>,
    /// Symbolic links that lead to what the rules cover and are not covered themselves: inside they
    /// have to be made, or the names by which people know those paths would lead nowhere. `/lib` is
    /// one on most hosts.
    pub links: Vec<Link>,
    /// Whether there is a way out.
    pub network: Network,
    /// Where the program starts.
    pub cwd: PathBuf,
    /// What was left aside, for the log and for whoever asks for an explanation.
    pub warnings: Vec<Warning>,
}

impl Plan {
    /// What may be done at a path; nothing where no rule covers it.
    #[must_use]
    pub fn access(&self, path: &Path) -> Access {
        let covering = self.rules.iter().rev();
        let mut covering = covering.filter(|rule| path.starts_with(&rule.path));
        covering.next().map_or(Access::Deny, |rule| rule.access)
    }

    /// The same for somebody who only looks. Where nothing can be written nothing can be created, so
    /// that nothing has to stand where something is absent: who looks sees what is there.
    #[must_use]
    pub fn only_looking(mut self) -> Self {
        for rule in &mut self.rules {
            if rule.access == Access::Write {
                rule.access = Access::Read;
            }
        }
        self
    }
}

/// A path, and what may be done at and below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Absolute, and canonical as far as it exists.
    pub path: PathBuf,
    /// What may be done there.
    pub access: Access,
    /// What was there.
    pub presence: Presence,
    /// Which thing was there. What is there when it is mounted has to be the same, where this is
    /// known.
    pub identity: Option<Identity>,
    /// Where the rule comes from.
    pub why: Why,
}

/// Which of all files something is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The file system it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// What may be done at and below a path.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Look.
    Read,
    /// Look and change.
    Write,
    /// Nothing, not even look.
    Deny,
}

/// What was at a path when the plan was made.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// A directory.
    Directory,
    /// Anything else that exists.
    File,
    /// Nothing. What may not be written there can't be created either, and nothing is left on the
    /// host.
    Absent,
}

/// Where a rule comes from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The policy names it.
    Entry,
    /// It is a name that is protected under every writable root.
    Protected,
    /// It is part of what a program needs to run at all.
    Minimal,
    /// A pattern matches it.
    Glob,
    /// It is on the way from what may be written to a rule below it, and stays where it is: unless it
    /// is a mount point it could be renamed, and something else put into its place.
    Pinned,
}

/// A symbolic link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it is. Its parent is canonical.
    pub path: PathBuf,
    /// What it says.
    pub target: PathBuf,
}

/// Which network a confined process has.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// None, and no way to a socket of the host.
    Restricted,
    /// The host's.
    Enabled,
}

/// What was left aside when a plan was made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// A special path that nobody here has heard of.
    #[error("the special path {0:?} isn't known here and is ignored")]
    UnknownSpecial(String),
    /// A temporary directory that can't be granted.
    #[error("TMPDIR is {0:?}, which is not an absolute path, and is ignored")]
    Tmpdir(PathBuf),
    /// Something that was to be granted if it is there.
    #[error("{0:?} is to be written and does not exist, so nothing is granted there")]
    NothingToWrite(PathBuf),
    /// What nobody who runs as we do can get at.
    #[error("{0:?} is out of reach for the user of this server, so nothing is done about it")]
    OutOfReach(PathBuf),
    /// What is in a directory that lets us no further.
    #[error("{path:?} can't be looked at, so what holds for it holds for all of {closed:?}")]
    Closed {
        /// What was asked for.
        path: PathBuf,
        /// The directory.
        closed: PathBuf,
    },
    /// A protected name that is a link, where anybody may have put it.
    #[error("{0:?} is a symbolic link in a temporary directory and can't be protected")]
    TemporaryLink(PathBuf),
    /// What is denied below a file, which has to stay what it is.
    #[error("{path:?} can't be kept from appearing unless {kept:?} is read-only, so it is")]
    Blocked {
        /// What may not appear.
        path: PathBuf,
        /// What is in its place today.
        kept: PathBuf,
        /// Whether it may not even be read.
        denied: bool,
    },
}
