//! Opens both ends of a child's standard streams.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use crate::command::Stdio;
use crate::terminal::{self, Terminal};

/// The parent's ends, close-on-exec and non-blocking.
#[derive(Debug)]
pub(crate) enum ParentEnds {
    Pipes {
        stdin: Option<OwnedFd>,
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
    Pty {
        master: Arc<Terminal>,
    },
}

/// The child's ends, close-on-exec and blocking. Dropped as soon as the child has its copies, because a
/// pipe or terminal ends only when its last writer is closed.
#[derive(Debug)]
pub(crate) enum ChildEnds {
    Pipes {
        /// `None` is `/dev/null`.
        stdin: Option<OwnedFd>,
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
    Pty {
        slave: OwnedFd,
    },
}

/// Opens the streams of a child.
pub(crate) fn open(stdio: Stdio) -> Result<(ParentEnds, ChildEnds), Errno> {
    match stdio {
        Stdio::Pipes { stdin } => {
            let input = if stdin { Some(input_pipe()?) } else { None };
            let (our_stdin, stdin) = input.unzip();
            let (our_stdout, stdout) = output_pipe()?;
            let (our_stderr, stderr) = output_pipe()?;
            let ours = ParentEnds::Pipes {
                stdin: our_stdin,
                stdout: our_stdout,
                stderr: our_stderr,
            };
            let theirs = ChildEnds::Pipes {
                stdin,
                stdout,
                stderr,
            };
            Ok((ours, theirs))
        }
        Stdio::Pty { size } => {
            let (master, slave) = terminal::open(size)?;
            let master = Arc::new(Terminal::new(master));
            Ok((ParentEnds::Pty { master }, ChildEnds::Pty { slave }))
        }
    }
}

impl ChildEnds {
    /// The descriptors for 0, 1 and 2. `null` is the stdin of a child without input.
    pub(crate) fn streams<'a>(&'a self, null: BorrowedFd<'a>) -> [BorrowedFd<'a>; 3] {
        match self {
            ChildEnds::Pipes {
                stdin,
                stdout,
                stderr,
            } => {
                let stdin = stdin.as_ref().map_or(null, AsFd::as_fd);
                [stdin, stdout.as_fd(), stderr.as_fd()]
            }
            ChildEnds::Pty { slave } => [slave.as_fd(); 3],
        }
    }
}

/// Returns the parent's writing end and the child's reading end.
fn input_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&write, true)?;
    Ok((write, read))
}

/// Returns the parent's reading end and the child's writing end.
fn output_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((read, write))
}
