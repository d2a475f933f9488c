//! The resources on the host of a sandboxed process.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use tokio::time::timeout;

use super::placeholder::{PlaceholderSet, RemovedPlaceholders};
use super::supervisor::Supervisor;
use crate::Level;

/// How long an exit is not reported because of placeholders that are being removed.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Resources on the host that a sandboxed process needs while any of its processes lives: its
/// placeholders, a pidfd of process 1 of its PID namespace, and the supervisor of its connections.
///
/// Dropping it removes the placeholders on the calling thread.
#[derive(Debug)]
pub struct HostResources {
    pub(super) placeholders: PlaceholderSet,
    pub(super) level: Level,
    /// A pidfd of process 1 of the sandbox, which exits last. None until the helper sent it.
    pub(super) init: Option<OwnedFd>,
    /// None if the sandbox has no unix sockets.
    pub(super) supervisor: Option<Supervisor>,
    /// Listeners in its network namespace, in the order of the request.
    pub(super) listeners: Vec<TcpListener>,
}

impl HostResources {
    /// Answers the system calls of the sandbox that need a supervisor. If that fails they fail too.
    pub(super) fn supervise(&mut self, listener: OwnedFd) {
        match Supervisor::start(listener) {
            Ok(supervisor) => self.supervisor = Some(supervisor),
            Err(error) => tracing::warn!(%error, "sandboxed process can't connect to sockets"),
        }
    }

    /// Takes the listeners in its network namespace, in the order of the request. While one is open, the
    /// program can connect to it.
    pub fn take_listeners(&mut self) -> Vec<TcpListener> {
        std::mem::take(&mut self.listeners)
    }

    /// Sets the pidfd of process 1 of the sandbox.
    ///
    /// The helper opens and sends it because it is the child of that process. By the time the
    /// server could look it up, the program may have ended and left other processes running.
    pub fn set_init(&mut self, init: Option<OwnedFd>) {
        self.init = init;
    }

    /// Removes the placeholders, on a blocking thread, because their file system may not answer; then they
    /// are removed later. To be called when no process of the sandbox lives. Dropping the result closes
    /// their directories, which takes longer than removing them.
    pub async fn release(self) -> Option<RemovedPlaceholders> {
        let placeholders = self.placeholders;
        if placeholders.is_empty() {
            return None;
        }
        let removal = tokio::task::spawn_blocking(move || placeholders.release());
        let Ok(removed) = timeout(REMOVE_TIMEOUT, removal).await else {
            tracing::warn!(timeout = ?REMOVE_TIMEOUT, "placeholders are not removed yet");
            return None;
        };
        removed.ok()
    }

    /// Returns whether process 1 of the sandbox has no children, so that it is about to exit. Also
    /// true if the children can't be read.
    #[must_use]
    pub fn is_only_init_left(&self) -> bool {
        self.init
            .as_ref()
            .is_none_or(|init| children(init).is_none())
    }

    /// Returns a descriptor that becomes readable when no process of the sandbox lives; none if the
    /// sandbox has no PID namespace.
    ///
    /// # Errors
    /// If the descriptor can't be duplicated, or the helper sent none. Processes may still live
    /// then.
    pub fn init(&self) -> io::Result<Option<OwnedFd>> {
        match (self.level, &self.init) {
            (Level::Landlock, _) => Ok(None),
            (Level::Namespaces, Some(init)) => init.try_clone().map(Some),
            (Level::Namespaces, None) => Err(Errno::SRCH.into()),
        }
    }
}

/// Returns the children of a process; none if it has none or the kernel doesn't tell.
fn children(pidfd: &OwnedFd) -> Option<String> {
    let fdinfo = format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd());
    let fdinfo = std::fs::read_to_string(fdinfo).ok()?;
    let pid = fdinfo
        .lines()
        .find_map(|line| line.strip_prefix("Pid:"))?
        .trim();
    let children = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(children).ok()?;
    (!children.trim().is_empty()).then_some(children)
}
