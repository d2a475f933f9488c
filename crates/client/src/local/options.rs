//! How a local place is set up.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use outpost_engine::{
    KeeperCommand, Limits, TreeChoice,
    sandbox::{Level, StageCommand},
};

/// How a local place is set up. Nothing of it is looked up behind the caller's
/// back, and nothing that belongs to the whole program is changed.
#[derive(Clone, Debug)]
pub struct LocalOptions {
    /// How process trees are kept together.
    pub trees: TreeChoice,
    /// The program that keeps trees where there are no cgroups. Without it a
    /// host that has none keeps them by process groups, which a daemon can
    /// escape.
    pub keeper: Option<KeeperCommand>,
    /// The program that stands between this one and a confined process. Without
    /// it no process can be confined, and those that are to be don't start.
    pub stages: Option<StageCommand>,
    /// By what means processes are confined.
    pub sandbox_level: Level,
    /// What its processes may inherit; none for the environment that this
    /// program has now.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// Where processes start that name no directory; none for where this program
    /// is now.
    pub cwd: Option<PathBuf>,
    /// How many open files a process may have, soft and hard limit; none leaves
    /// it this program's own.
    pub child_open_files: Option<(u64, u64)>,
    /// Bounds and times.
    pub limits: Limits,
    /// How long [`Place::close`](crate::Place::close) may take: what is asked to
    /// end has 2 s of it.
    pub close_within: Duration,
}

impl Default for LocalOptions {
    fn default() -> Self {
        LocalOptions {
            trees: TreeChoice::Auto,
            keeper: None,
            stages: None,
            sandbox_level: Level::default(),
            environment: None,
            cwd: None,
            child_open_files: None,
            limits: Limits::default(),
            close_within: Duration::from_millis(4500),
        }
    }
}
