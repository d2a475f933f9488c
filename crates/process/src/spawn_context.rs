//! State shared by the spawner threads: host features, detected once, and the tree factory.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::WaitIdOptions;

use crate::exit::Exit;
use crate::leader::{self, WaitResult};
use crate::spawner::SpawnerOptions;
use crate::sys::child_setup::{self, CloseMode, ProbeTest};
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
    pub(crate) fd_table: FdTableMode,
    pub(crate) signal_reset: SignalReset,
    pub(crate) trees: TreeFactory,
}

/// SIGCHLD is ignored in this program, perhaps inherited. The kernel then reaps children at once: their
/// exit status is lost, and their pids are reused while they are still in use here.
#[derive(Debug, thiserror::Error)]
#[error("SIGCHLD is ignored, so the exit status of children would be lost")]
struct SigchldIgnored;

/// How a child gets its own descriptor table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum FdTableMode {
    /// It shares the server's table first, so that only the part it needs is copied.
    Shared,
    /// It copies the whole table, and closes a range.
    Copied,
    /// It copies the whole table, and closes descriptors one by one.
    CopiedNoRange,
}

impl SpawnContext {
    pub(crate) fn detect(options: &SpawnerOptions) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let legacy_clone = !clone::has_clone3();
        let fd_table = FdTableMode::detect(legacy_clone)?;
        let subreaper = options.subreaper.as_ref();
        Ok(Self {
            null: rustix::fs::open("/dev/null", flags, Mode::empty())?,
            open_files: options.child_open_files,
            legacy_clone,
            fd_table,
            signal_reset: SignalReset::detect(legacy_clone)?,
            trees: TreeFactory::open(options.trees, subreaper, legacy_clone, fd_table)?,
        })
    }

    /// The stdin of a child without input.
    pub(crate) fn null(&self) -> BorrowedFd<'_> {
        self.null.as_fd()
    }

    pub(crate) fn shares_files(&self) -> bool {
        self.fd_table == FdTableMode::Shared
    }
}

impl FdTableMode {
    fn detect(legacy_clone: bool) -> io::Result<Self> {
        let options = CloneOptions {
            legacy_clone,
            share_files: true,
            ..CloneOptions::default()
        };
        let child = clone::probe(options, &mut ChildStack::new()?, ProbeTest::Unshare)?;
        match leader::wait_pidfd(&child.pidfd, WaitIdOptions::empty()) {
            WaitResult::Lost => Err(io::Error::other(SigchldIgnored)),
            WaitResult::Exited(Exit::Code(0)) => Ok(FdTableMode::Shared),
            _ if child_setup::has_close_range() => Ok(FdTableMode::Copied),
            _ => Ok(FdTableMode::CopiedNoRange),
        }
    }

    pub(crate) fn close_mode(self) -> CloseMode {
        match self {
            FdTableMode::Shared => CloseMode::Unshare,
            FdTableMode::Copied => CloseMode::Range,
            FdTableMode::CopiedNoRange => CloseMode::Each {
                highest: highest_descriptor(),
            },
        }
    }
}

/// The highest open descriptor. Another thread may open a higher one in the meantime, but all that
/// this program opens are close-on-exec; closing them explicitly is only a second safeguard.
pub(crate) fn highest_descriptor() -> RawFd {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let number =
        |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    entries.filter_map(number).max().unwrap_or(1024)
}
