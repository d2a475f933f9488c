//! The two sides of a child's standard streams.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use crate::command::Stdio;
use crate::terminal::{self, Terminal};

/// Our side. Everything here is close-on-exec and non-blocking.
#[derive(Debug)]
pub(crate) enum Ours {
    Pipes {
        stdin: Option<OwnedFd>,
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
    Pty {
        master: Arc<Terminal>,
    },
}

/// The child's side: close-on-exec and blocking. Dropped as soon as the child has its copies, since
/// a pipe or terminal ends only when its last writer is closed.
#[derive(Debug)]
pub(crate) enum Theirs {
    Pipes {
        /// None is `/dev/null`.
        stdin: Option<OwnedFd>,
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
    Pty {
        slave: OwnedFd,
    },
}

/// Opens what a child on `stdio` needs.
pub(crate) fn open(stdio: Stdio) -> Result<(Ours, Theirs), Errno> {
    match stdio {
        Stdio::Pipes { stdin } => {
            let input = if stdin { Some(input_pipe()?) } else { None };
            let (our_stdin, stdin) = input.unzip();
            let (our_stdout, stdout) = output_pipe()?;
            let (our_stderr, stderr) = output_pipe()?;
            let ours = Ours::Pipes {
                stdin: our_stdin,
                stdout: our_stdout,
                stderr: our_stderr,
            };
            let theirs = Theirs::Pipes {
                stdin,
                stdout,
                stderr,
            };
            Ok((ours, theirs))
        }
        Stdio::Pty { size } => {
            let (master, slave) = terminal::open(size)?;
            let master = Arc::new(Terminal::new(master));
            Ok((Ours::Pty { master }, Theirs::Pty { slave }))
        }
    }
}

impl Theirs {
    /// What is to become 0, 1 and 2; `null` is what a child without input reads.
    pub(crate) fn ends<'a>(&'a self, null: BorrowedFd<'a>) -> [BorrowedFd<'a>; 3] {
        match self {
            Theirs::Pipes {
                stdin,
                stdout,
                stderr,
            } => {
                let stdin = stdin.as_ref().map_or(null, AsFd::as_fd);
                [stdin, stdout.as_fd(), stderr.as_fd()]
            }
            Theirs::Pty { slave } => [slave.as_fd(); 3],
        }
    }
}

/// Our writing end, and the child's reading one.
fn input_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&write, true)?;
    Ok((write, read))
}

/// Our reading end, and the child's writing one.
fn output_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((read, write))
}
