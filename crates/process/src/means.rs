//! What this host lets us start programs with.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::WaitIdOptions;

use crate::exit::Exit;
use crate::leader::{self, Ended};
use crate::spawner::SpawnerOptions;
use crate::sys::birth::{self, Closing, Trial};
use crate::sys::clone::{self, How};
use crate::sys::dispositions::Dispositions;
use crate::sys::stack::ChildStack;
use crate::tree::Nursery;

/// Found out once for a spawner, and shared by its threads.
#[derive(Debug)]
pub(crate) struct Means {
    null: OwnedFd,
    /// The limits a child gets instead of the server's: soft, hard.
    pub(crate) open_files: Option<(u64, u64)>,
    /// `clone3` is refused, as in old containers.
    pub(crate) old_call: bool,
    pub(crate) tables: Tables,
    pub(crate) dispositions: Dispositions,
    pub(crate) nursery: Nursery,
}

/// SIGCHLD is ignored in this program, perhaps since it was started that way: the kernel reaps its
/// children at once, nobody learns how they ended, and their numbers are given away while we use
/// them. Nothing can be started like this.
#[derive(Debug, thiserror::Error)]
#[error("SIGCHLD is ignored, so the ends of children would be lost")]
struct ChildrenAreLost;

/// How a child comes by a table of descriptors of its own.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tables {
    /// It shares ours first, so that only what it needs is ever copied.
    Shared,
    /// It copies all of it, and can close a range.
    Copied,
    /// It copies all of it, and has to close one by one.
    Single,
}

impl Means {
    pub(crate) fn find(options: &SpawnerOptions) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let old_call = !clone::has_clone3();
        let tables = Tables::find(old_call)?;
        Ok(Self {
            null: rustix::fs::open("/dev/null", flags, Mode::empty())?,
            open_files: options.child_open_files,
            old_call,
            tables,
            dispositions: Dispositions::find(old_call)?,
            nursery: Nursery::open(options.trees, options.keeper.as_ref(), old_call, tables)?,
        })
    }

    /// What a child without input reads.
    pub(crate) fn null(&self) -> BorrowedFd<'_> {
        self.null.as_fd()
    }

    pub(crate) fn share_files(&self) -> bool {
        self.tables == Tables::Shared
    }

    pub(crate) fn closing(&self) -> Closing {
        self.tables.closing()
    }
}

impl Tables {
    fn find(old_call: bool) -> io::Result<Self> {
        let how = How {
            old_call,
            share_files: true,
            ..How::default()
        };
        let child = clone::attempt(how, &mut ChildStack::new()?, Trial::Unshare)?;
        match leader::ask(&child.pidfd, WaitIdOptions::empty()) {
            Ended::Lost => Err(io::Error::other(ChildrenAreLost)),
            Ended::With(Exit::Code(0)) => Ok(Tables::Shared),
            _ if birth::has_close_range() => Ok(Tables::Copied),
            _ => Ok(Tables::Single),
        }
    }

    pub(crate) fn closing(self) -> Closing {
        match self {
            Tables::Shared => Closing::Unshare,
            Tables::Copied => Closing::Range,
            Tables::Single => Closing::Each {
                highest: highest_descriptor(),
            },
        }
    }
}

/// Somebody may open a higher one meanwhile; what this server opens is close-on-exec, so this is a
/// net under a net.
pub(crate) fn highest_descriptor() -> RawFd {
    let numbers = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let number =
        |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    numbers.filter_map(number).max().unwrap_or(1024)
}
