//! Opens both ends of a child's standard streams.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

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
    Pty(Arc<Terminal>),
}

/// The child's ends, close-on-exec and blocking. Dropped as soon as the child has its copies, because a
/// pipe or terminal ends only when its last writer is closed.
#[derive(Debug)]
pub(crate) struct ChildEnds {
    /// `None` is `/dev/null`.
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    /// `None` on a terminal, which is `stdout` and all three.
    stderr: Option<OwnedFd>,
}

/// Opens the streams of a child.
pub(crate) fn open(stdio: Stdio) -> io::Result<(ParentEnds, ChildEnds)> {
    let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
    match stdio {
        Stdio::Pipes { stdin } => {
            let (their_stdin, stdin) = stdin.then(pipe).transpose()?.unzip();
            let (stdout, their_stdout) = pipe()?;
            let (stderr, their_stderr) = pipe()?;
            for ours in stdin.iter().chain([&stdout, &stderr]) {
                rustix::io::ioctl_fionbio(ours, true)?;
            }
            let theirs = ChildEnds {
                stdin: their_stdin,
                stdout: their_stdout,
                stderr: Some(their_stderr),
            };
            let ours = ParentEnds::Pipes {
                stdin,
                stdout,
                stderr,
            };
            Ok((ours, theirs))
        }
        Stdio::Pty { size } => {
            let (master, slave) = terminal::open(size)?;
            let theirs = ChildEnds {
                stdin: None,
                stdout: slave,
                stderr: None,
            };
            Ok((ParentEnds::Pty(Arc::new(Terminal::new(master))), theirs))
        }
    }
}

impl ChildEnds {
    /// The descriptors for 0, 1 and 2. `null` is the stdin of a child without input.
    pub(crate) fn streams<'a>(&'a self, null: BorrowedFd<'a>) -> [BorrowedFd<'a>; 3] {
        let stdout = self.stdout.as_fd();
        match &self.stderr {
            None => [stdout; 3],
            Some(stderr) => {
                let stdin = self.stdin.as_ref().map_or(null, AsFd::as_fd);
                [stdin, stdout, stderr.as_fd()]
            }
        }
    }
}
