//! State shared by the spawner threads: host features, detected once, and the tree factory.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::WaitIdOptions;

use crate::exit::{self, Exit};
use crate::spawner::SpawnerOptions;
use crate::sys::child_setup::{CloseMode, ProbeTest};
use crate::sys::clone::{self, CloneOptions};
use crate::sys::signal_reset::SignalReset;
use crate::sys::stack::ChildStack;
use crate::tree::TreeFactory;

/// Shared by the threads of one spawner.
#[derive(Debug)]
pub(crate) struct SpawnContext {
    null: OwnedFd,
    /// The limit on open files for children, soft and hard, instead of the server's.
    pub(crate) open_files: Option<(u64, u64)>,
    /// `clone3` is unavailable, as in old containers.
    pub(crate) legacy_clone: bool,
    pub(crate) close_mode: CloseMode,
    pub(crate) signal_reset: SignalReset,
    pub(crate) trees: TreeFactory,
}

/// SIGCHLD is ignored in this program, perhaps inherited. The kernel then reaps children at once: their
/// exit status is lost, and their pids are reused while they are still in use here.
#[derive(Debug, thiserror::Error)]
#[error("SIGCHLD is ignored, so the exit status of children would be lost")]
struct SigchldIgnored;

impl SpawnContext {
    pub(crate) fn detect(options: &SpawnerOptions) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let legacy_clone = !clone::has_clone3();
        let close_mode = detect_close_mode(legacy_clone)?;
        let subreaper = options.subreaper.as_ref();
        Ok(Self {
            null: rustix::fs::open("/dev/null", flags, Mode::empty())?,
            open_files: options.child_open_files,
            legacy_clone,
            close_mode,
            signal_reset: SignalReset::detect(legacy_clone)?,
            trees: TreeFactory::open(options.trees, subreaper, legacy_clone, close_mode)?,
        })
    }

    /// The stdin of a child without input.
    pub(crate) fn null(&self) -> BorrowedFd<'_> {
        self.null.as_fd()
    }
}

/// Probes how a child can get a descriptor table of its own.
fn detect_close_mode(legacy_clone: bool) -> io::Result<CloseMode> {
    let options = CloneOptions {
        legacy_clone,
        share_files: true,
        ..CloneOptions::default()
    };
    let child = clone::probe(options, &mut ChildStack::new()?, ProbeTest::Unshare)?;
    match exit::wait_pidfd(&child.pidfd, WaitIdOptions::empty()) {
        Some(Exit::Lost) => Err(io::Error::other(SigchldIgnored)),
        Some(Exit::Code(0)) => Ok(CloseMode::Unshare),
        _ => Ok(CloseMode::of_copied_table()),
    }
}
