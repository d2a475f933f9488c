//! Processes whose subreaper was killed.
//!
//! The kernel reparents these orphans to the subreaper factory. If the factory was killed too, they are
//! reparented to an ancestor of the server or to init, and the server cannot find them. If the server is
//! a child subreaper itself ([`SpawnerOptions::adopts_orphans`](crate::SpawnerOptions::adopts_orphans)),
//! it inherits the orphans, and the subreapers of a killed factory. The server must then reap their
//! zombies.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal};

use super::descendants::ChildLookupMethod;
use super::handle::ReaperHandle;
use super::pool::ReaperPool;
use crate::sys::wait_children;
use crate::tree::proc_stat::{self, ProcStat};
use crate::tree::{is_running, tree_pidfds};

/// How often this process looks for inherited orphans, while it starts other processes.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The processes of one tree whose subreaper was killed, and the orphans of other such trees.
#[derive(Debug)]
pub(super) struct Orphans {
    pool: Arc<ReaperPool>,
    /// Pidfds of the processes found so far.
    found: Vec<OwnedFd>,
}

impl Orphans {
    /// Finds the processes of the tree by their parents, sessions and groups, and all inherited orphans.
    pub(super) fn find(reaper: &ReaperHandle, leader: Pid) -> Self {
        let pool = Arc::clone(&reaper.pool);
        pool.resume_factory();
        let leaders = [Some(&leader), reaper.socket.pid.get()];
        let mut found = tree_pidfds(leaders.into_iter().flatten().copied());
        found.extend(pool.orphans().unwrap_or_default());
        tracing::warn!(
            leader = %leader,
            left = found.len(),
            "a subreaper was killed; ending its processes"
        );
        Self { pool, found }
    }

    pub(super) fn kill(&self) {
        self.pool.resume_factory();
        kill_all(&self.found);
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.found.retain(is_running);
        if self.found.is_empty() {
            // Also find and kill processes that were forked in the meantime.
            let Some(found) = self.pool.orphans() else {
                return true;
            };
            self.found = found;
            self.kill();
        }
        !self.found.is_empty()
    }
}

pub(super) fn kill_all(pidfds: &[OwnedFd]) {
    for pidfd in pidfds {
        let _ = rustix::process::pidfd_send_signal(pidfd, Signal::KILL);
    }
}

/// Finds the orphans among the children of a factory. `None` while the factory exits: its children get
/// another parent then.
pub(super) fn of_factory(factory: Pid) -> Option<Vec<ProcStat>> {
    let executable = match executable(factory) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
        Err(_) => {
            let is_exiting = proc_stat::read(factory).is_some_and(|stat| !stat.zombie);
            return (!is_exiting).then(Vec::new);
        }
        Ok(path) => Some(path),
    };
    let all = proc_stat::read_all().into_iter();
    let parent = factory.as_raw_nonzero().get();
    let children = all.filter(|stat| stat.parent == parent);
    let others = children.filter(|stat| !is_subreaper(stat.pid, executable.as_deref()));
    Some(others.collect())
}

/// Whether a child of the factory is a subreaper: it has the name of one and the factory's executable. A
/// program can take the name, but then its executable is another one.
fn is_subreaper(pid: Pid, factory_executable: Option<&Path>) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    name.is_ok_and(|name| matches!(name.trim_end(), "subreaper" | "reaper-factory"))
        && executable(pid).ok().as_deref() == factory_executable
}

/// Not permitted to a plain user for the factory and its subreapers, which are not dumpable.
fn executable(pid: Pid) -> std::io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe"))
}

/// Finds and reaps orphans reparented to this process, which is a child subreaper.
#[derive(Debug)]
pub(super) struct SubreaperRole {
    lookup: ChildLookupMethod,
    last_check: Mutex<Check>,
}

/// The last check for inherited zombies.
#[derive(Debug)]
struct Check {
    at: Instant,
    /// Zombies of this process's session, with their start times.
    zombies: HashSet<(Pid, u64)>,
}

impl SubreaperRole {
    /// Makes this process a child subreaper. `None` if it cannot find its children, or is the init process
    /// of a container, which inherits the orphans of others too.
    pub(super) fn begin() -> Option<Self> {
        let own = rustix::process::getpid();
        if own == Pid::INIT {
            return None;
        }
        let lookup = ChildLookupMethod::detect().ok()?;
        rustix::process::set_child_subreaper(Some(own)).ok()?;
        let check = Check {
            at: Instant::now(),
            zombies: HashSet::new(),
        };
        Some(Self {
            lookup,
            last_check: Mutex::new(check),
        })
    }

    /// Finds the orphans among the children of this process, and reaps those that are zombies. `ours` are
    /// the factory and the subreapers. Other children that this process has started are in its session,
    /// which a process of a tree cannot join.
    pub(super) fn orphans(&self, ours: &HashSet<Pid>) -> Vec<ProcStat> {
        let mut found = self.children(ours);
        found.retain(|child| !is_in_own_session(child));
        found.retain(|child| !(child.zombie && wait_children::reap(child.pid)));
        found
    }

    /// Whether it is time to look for orphans. If so, also reaps zombies of this process's session that
    /// were zombies at the last check too, such as those of a killed probe: no code waits for them.
    pub(super) fn is_due(&self, ours: impl FnOnce() -> HashSet<Pid>) -> bool {
        let mut last = self.last_check.lock();
        if last.at.elapsed() < CHECK_INTERVAL {
            return false;
        }
        let children = self.children(&ours()).into_iter();
        let zombies = children.filter(|child| child.zombie && is_in_own_session(child));
        let zombies = zombies.map(|child| (child.pid, child.started));
        let zombies = zombies.filter(|zombie| {
            let unawaited = last.zombies.contains(zombie);
            !(unawaited && wait_children::reap(zombie.0))
        });
        *last = Check {
            zombies: zombies.collect(),
            at: Instant::now(),
        };
        true
    }

    fn children(&self, ours: &HashSet<Pid>) -> Vec<ProcStat> {
        let children = self.lookup.children(rustix::process::getpid()).into_iter();
        let others = children.filter(|child| !ours.contains(child));
        others.filter_map(proc_stat::read).collect()
    }
}

impl Drop for SubreaperRole {
    fn drop(&mut self) {
        let _ = rustix::process::set_child_subreaper(None);
    }
}

/// Read from procfs, because the id is 0 if the session's leader is in an outer PID namespace, which
/// `rustix::process::getsid` does not expect.
fn is_in_own_session(process: &ProcStat) -> bool {
    let own = proc_stat::read(rustix::process::getpid());
    own.is_some_and(|own| own.session == process.session)
}

/// Opens pidfds of these processes and their descendants.
pub(super) fn with_descendants(roots: Vec<ProcStat>) -> Vec<OwnedFd> {
    if roots.is_empty() {
        return Vec::new();
    }
    let pid = |stat: &ProcStat| stat.pid.as_raw_nonzero().get();
    let mut members: HashSet<i32> = roots.iter().map(pid).collect();
    let mut found = roots;
    let all = proc_stat::read_all();
    loop {
        let before = found.len();
        for stat in &all {
            if members.contains(&stat.parent) && members.insert(pid(stat)) {
                found.push(*stat);
            }
        }
        if found.len() == before {
            break;
        }
    }
    let alive = found.iter().filter(|stat| !stat.zombie);
    alive.filter_map(ProcStat::open_pidfd).collect()
}
