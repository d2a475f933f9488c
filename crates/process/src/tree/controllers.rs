//! Cgroups with controllers, which enforce limits.
//!
//! A controller works in a cgroup only if every cgroup above enables it, and the kernel refuses that to a
//! cgroup with processes of its own. So the server may have to leave its cgroup for one below it. Only a
//! cgroup that was delegated to the server is changed, and only if no other program runs in it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outpost_types::{LimitName, ResourceLimits, TreeKind};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::cgroup::{self, Cgroup};
use super::cgroup_root::{CgroupRoot, RemovedCgroups, open_directory, own_cgroup};
use super::stale_cgroups;

/// The period of `cpu.max`, in microseconds.
const PERIOD: f64 = 100_000.0;

/// Where the server's own processes go. Not removed with the server: others may use it.
const LEAF: &str = "outpost.server";

/// The attributes with which systemd marks a cgroup of a unit with `Delegate=yes`.
const DELEGATED: [&str; 2] = ["user.delegate", "trusted.delegate"];

const REMEDY: &str = "run outpost in a systemd unit of its own with Delegate=yes";

/// The limits that need a cgroup, each with its controller and file.
const LIMITS: [(LimitName, &str, &str); 4] = [
    (LimitName::MemoryBytes, "memory", "memory.max"),
    (LimitName::SwapBytes, "memory", "memory.swap.max"),
    (LimitName::Cpus, "cpu", "cpu.max"),
    (LimitName::Processes, "pids", "pids.max"),
];

const CONTROLLERS: [&str; 3] = ["memory", "cpu", "pids"];

/// The directory of cgroups with limits, and the limits that do not work there.
#[derive(Debug)]
pub(crate) struct LimitedRoot {
    /// `None` if no limit works.
    root: Option<Arc<CgroupRoot>>,
    /// With the reason and the remedy.
    pub(super) unenforceable: BTreeMap<LimitName, String>,
}

/// Why a controller cannot be used. The text is part of a message to the client.
#[derive(Debug, thiserror::Error)]
enum Unavailable {
    #[error("process trees of kind {0} have no controllers; {REMEDY}")]
    Kind(TreeKind),
    #[error("cannot use outpost's cgroup: {0}; {REMEDY}")]
    Cgroup(io::Error),
    #[error(
        "the {controller} controller is not available in outpost's cgroup {}; it has to be enabled \
         there, for cgroup version 2: {REMEDY}", .cgroup.display()
    )]
    Missing {
        controller: &'static str,
        cgroup: PathBuf,
    },
    #[error("outpost's cgroup {} is not delegated to it; {REMEDY}", .0.display())]
    NotDelegated(PathBuf),
    #[error("this program may not move itself to another cgroup; {REMEDY} and DelegateSubgroup=")]
    MayNotMove,
    #[error("another program runs in outpost's cgroup, with pid {0}; {REMEDY}")]
    Occupied(i32),
    #[error("cannot enable the {controller} controller: {error}; {REMEDY}")]
    Enable {
        controller: &'static str,
        error: Errno,
    },
    #[error("the kernel has no {0}")]
    NoFile(&'static str),
}

/// The reasons for each limit if trees are not cgroups.
pub(super) fn unenforceable_without_cgroups(kind: TreeKind) -> BTreeMap<LimitName, String> {
    let reason = Unavailable::Kind(kind).to_string();
    LIMITS.map(|(name, ..)| (name, reason.clone())).into()
}

impl LimitedRoot {
    /// Creates the directory and enables the controllers that this host allows.
    pub(super) fn open(may_move: bool, removed: &Arc<RemovedCgroups>) -> Self {
        match Self::try_open(may_move, removed) {
            Ok(root) => root,
            Err(error) => Self {
                root: None,
                unenforceable: {
                    let reason = Unavailable::Cgroup(error).to_string();
                    LIMITS.map(|(name, ..)| (name, reason.clone())).into()
                },
            },
        }
    }

    fn try_open(may_move: bool, removed: &Arc<RemovedCgroups>) -> io::Result<Self> {
        let own = own_cgroup().ok_or(io::ErrorKind::NotFound)?;
        let base = ParentCgroup::find(&own)?;
        let mut failures = base.enable_controllers(&own, may_move)?;
        if base.path != own {
            stale_cgroups::end_all(&base.path);
        }
        let root = CgroupRoot::create_in(&base.path, 0, removed)?;
        for controller in CONTROLLERS {
            if !failures.contains_key(controller)
                && let Err(error) = enable(root.directory(), controller)
            {
                failures.insert(controller, Unavailable::Enable { controller, error });
            }
        }
        cgroup::probe(&root)?;
        let root = Arc::new(root);
        let (probe, directory) = Cgroup::create(&root)?;
        let mut unenforceable = BTreeMap::new();
        for (name, controller, file) in LIMITS {
            let reason = match failures.get(controller) {
                Some(failure) => failure.to_string(),
                None if cgroup::open(directory.as_fd(), file, OFlags::WRONLY).is_err() => {
                    Unavailable::NoFile(file).to_string()
                }
                None => continue,
            };
            unenforceable.insert(name, reason);
        }
        drop(probe);
        tracing::debug!(?unenforceable, cgroup = %base.path.display(), "probed limits of processes");
        Ok(Self {
            root: (unenforceable.len() < LIMITS.len()).then_some(root),
            unenforceable,
        })
    }

    /// The directory, if a limit works.
    pub(super) fn directory(&self) -> Option<Arc<CgroupRoot>> {
        self.root.clone()
    }

    /// Creates a cgroup with these limits, as far as they need one.
    pub(super) fn create(&self, limits: &ResourceLimits) -> io::Result<(Cgroup, OwnedFd)> {
        let root = self.root.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let (cgroup, directory) = Cgroup::create(root)?;
        for (file, value) in settings(limits) {
            cgroup::write(directory.as_fd(), file, value.as_bytes())?;
        }
        cgroup.measure();
        Ok((cgroup, directory))
    }
}

/// The files to write for the limits.
fn settings(limits: &ResourceLimits) -> Vec<(&'static str, String)> {
    let mut settings = Vec::new();
    if let Some(bytes) = limits.memory_bytes {
        settings.push(("memory.max", bytes.to_string()));
        // Ends the tree as a whole: what is left of one without some process is seldom of use.
        settings.push(("memory.oom.group", "1".to_owned()));
    }
    if let Some(bytes) = limits.swap_bytes {
        settings.push(("memory.swap.max", bytes.to_string()));
    }
    if let Some(cpus) = limits.cpus {
        settings.push(("cpu.max", format!("{:.0} {PERIOD}", cpus * PERIOD)));
    }
    if let Some(processes) = limits.processes {
        settings.push(("pids.max", processes.to_string()));
    }
    settings
}

/// The cgroup in which the directory is created: the server's own one, or the one above if that was
/// delegated and the server runs in a leaf of it.
struct ParentCgroup {
    path: PathBuf,
    directory: OwnedFd,
    is_delegated: bool,
}

impl ParentCgroup {
    fn find(own: &Path) -> io::Result<Self> {
        let open = |path: &Path| -> io::Result<Self> {
            let directory = open_directory(path)?;
            Ok(Self {
                is_delegated: is_delegated(&directory),
                path: path.to_owned(),
                directory,
            })
        };
        let this = open(own)?;
        if this.is_delegated {
            return Ok(this);
        }
        let above = own.parent().and_then(|above| open(above).ok());
        Ok(above.filter(|above| above.is_delegated).unwrap_or(this))
    }

    /// Enables the controllers for the cgroups below. Returns those that could not be enabled.
    fn enable_controllers(
        &self,
        own: &Path,
        may_move: bool,
    ) -> io::Result<BTreeMap<&'static str, Unavailable>> {
        let directory = self.directory.as_fd();
        let available = read(directory, "cgroup.controllers")?;
        let enabled = read(directory, "cgroup.subtree_control")?;
        let mut failures = BTreeMap::new();
        let mut moved = false;
        for controller in CONTROLLERS {
            if has(&enabled, controller) {
                continue;
            }
            let result = if !has(&available, controller) {
                let cgroup = self.path.clone();
                Err(Unavailable::Missing { controller, cgroup })
            } else if !self.is_delegated {
                Err(Unavailable::NotDelegated(self.path.clone()))
            } else if !moved && own == self.path {
                move_to_leaf(directory, may_move)
            } else {
                Ok(())
            };
            moved |= result.is_ok();
            let enable = || enable(directory, controller);
            let enabled = result
                .and_then(|()| enable().map_err(|error| Unavailable::Enable { controller, error }));
            if let Err(failure) = enabled {
                failures.insert(controller, failure);
            }
        }
        Ok(failures)
    }
}

/// Whether a cgroup was delegated: by systemd, or as the root of a container's namespace.
fn is_delegated(directory: &OwnedFd) -> bool {
    let mut value = [0; 8];
    let is_marked = DELEGATED.into_iter().any(|attribute| {
        let length = rustix::fs::fgetxattr(directory, attribute, &mut value);
        matches!(length, Ok(1)) && value[0] == b'1'
    });
    let exists = |file| cgroup::open(directory.as_fd(), file, OFlags::RDONLY).is_ok();
    // A container sees its own cgroup as the topmost one. That of the machine has no type.
    is_marked || (exists("cgroup.type") && !exists("../cgroup.procs"))
}

/// Moves the processes of this program out of a cgroup, if no other program runs in it.
fn move_to_leaf(directory: BorrowedFd<'_>, may_move: bool) -> Result<(), Unavailable> {
    if !may_move {
        return Err(Unavailable::MayNotMove);
    }
    let members = read(directory, "cgroup.procs").map_err(Unavailable::Cgroup)?;
    let program = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = program("self");
    let other = |pid: &&str| program(pid).is_none() || program(pid) != own;
    if let Some(pid) = members.lines().find(other) {
        let pid = pid.parse().unwrap_or_default();
        return Err(Unavailable::Occupied(pid));
    }
    let cgroup_error = |error: Errno| Unavailable::Cgroup(error.into());
    match rustix::fs::mkdirat(directory, LEAF, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(cgroup_error(error)),
    }
    let file = format!("{LEAF}/cgroup.procs");
    for pid in members.lines() {
        match cgroup::write(directory, &file, pid.as_bytes()) {
            // It has exited in the meantime.
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => return Err(cgroup_error(error)),
        }
    }
    let own = rustix::process::getpid().as_raw_nonzero().get();
    tracing::info!(
        pid = own,
        leaf = LEAF,
        "moved the server to a cgroup below its own"
    );
    Ok(())
}

fn enable(directory: BorrowedFd<'_>, controller: &str) -> Result<(), Errno> {
    let text = format!("+{controller}");
    cgroup::write(directory, "cgroup.subtree_control", text.as_bytes())
}

fn read(directory: BorrowedFd<'_>, file: &str) -> io::Result<String> {
    let file = cgroup::open(directory, file, OFlags::RDONLY)?;
    io::read_to_string(std::fs::File::from(file))
}

fn has(controllers: &str, controller: &str) -> bool {
    controllers
        .split_whitespace()
        .any(|name| name == controller)
}
