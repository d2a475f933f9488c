//! The policy as a whole.

use std::path::PathBuf;

use super::Entry;
use crate::Network;

/// What a confined process may do, as whoever asks for it sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Which files it may use.
    pub file_system: FileSystem,
    /// Whether it may use the network.
    pub network: Network,
    /// Where patterns start that don't start at the root. Absolute.
    pub cwd: PathBuf,
    /// What `project_roots` stands for. Absolute, and possibly none.
    pub workspace_roots: Vec<PathBuf>,
}

/// Which files a confined process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// Those that are named.
    Restricted(Restricted),
    /// All that its user may.
    Unrestricted,
}

/// The files that are named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restricted {
    /// In any order: the most specific one decides about a path, and of those that name the same
    /// path `deny` before `write` before `read`.
    pub entries: Vec<Entry>,
    /// How many directories deep patterns are looked for; as deep as it goes if nobody says.
    pub glob_scan_max_depth: Option<usize>,
}
