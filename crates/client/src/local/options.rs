//! Options of the local executor.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use outpost_engine::{
    Limits, ReaperCommand, TreeChoice,
    sandbox::{HelperCommand, Level},
};

/// Options of a [`LocalExecutor`](crate::LocalExecutor). It reads no configuration, and changes no
/// process-wide state.
#[derive(Clone, Debug)]
pub struct LocalOptions {
    /// The mechanism that tracks process trees.
    pub trees: TreeChoice,
    /// The command that starts a subreaper, for hosts without cgroups. Without it, such a host
    /// tracks trees by process groups, which a daemon can leave.
    pub subreaper: Option<ReaperCommand>,
    /// The command that starts the sandbox helper. Without it, processes with a sandbox don't
    /// start.
    pub sandbox_helper: Option<HelperCommand>,
    /// By what means processes are sandboxed.
    pub sandbox_level: Level,
    /// The environment that processes may inherit; `None` for that of this program.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// The default working directory; `None` for that of this program.
    pub cwd: Option<PathBuf>,
    /// The soft and hard limit of open files of a process; `None` for those of this program.
    pub child_open_files: Option<(u64, u64)>,
    /// Whether this program may be moved to a cgroup below its own, if that one is delegated to it. The
    /// kernel requires it for limits on the memory of processes.
    pub moves_own_cgroup: bool,
    /// Limits of the engine.
    pub limits: Limits,
    /// The timeout of [`Executor::close`](crate::Executor::close). It includes a grace period of
    /// 2 s.
    pub close_within: Duration,
}

impl Default for LocalOptions {
    fn default() -> Self {
        LocalOptions {
            trees: TreeChoice::Auto,
            subreaper: None,
            sandbox_helper: None,
            sandbox_level: Level::default(),
            environment: None,
            cwd: None,
            child_open_files: None,
            moves_own_cgroup: false,
            limits: Limits::default(),
            close_within: Duration::from_millis(4500),
        }
    }
}
