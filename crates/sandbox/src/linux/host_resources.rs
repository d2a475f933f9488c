//! Resources on the host that a confined process needs while any of its processes lives.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;

use super::placeholder::{PendingCleanup, PlaceholderSet};
use crate::Level;

/// Resources on the host that a confined process needs while any of its processes lives: its
/// placeholders, and a pidfd of process 1 of its PID namespace.
///
/// Dropping it removes the placeholders.
#[derive(Debug)]
pub struct HostResources {
    placeholders: PlaceholderSet,
    level: Level,
    /// A pidfd of process 1 of the sandbox, which exits last. None until the helper sent it.
    init: Option<OwnedFd>,
}

impl HostResources {
    pub(super) fn new(placeholders: PlaceholderSet, level: Level) -> Self {
        Self {
            placeholders,
            level,
            init: None,
        }
    }

    /// Sets the pidfd of process 1 of the sandbox.
    ///
    /// The helper opens and sends it because it is the child of that process. By the time the server
    /// could look it up, the program may have ended and left other processes running.
    pub fn set_init(&mut self, init: Option<OwnedFd>) {
        self.init = init;
    }

    /// Removes the placeholders. To be called when no process of the sandbox lives. Dropping the result
    /// closes their directories, which takes longer than removing them.
    #[must_use = "dropping it closes descriptors, which takes a while"]
    pub fn release(self) -> PendingCleanup {
        self.placeholders.release()
    }

    /// Returns whether process 1 of the sandbox has no children, so that it is about to exit. Also true
    /// if the children can't be read.
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
    /// If the descriptor can't be duplicated, or the helper sent none. Processes may still live then.
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
