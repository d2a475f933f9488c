//! Opens both ends of a child's standard streams.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::pipe::PipeFlags;

use crate::command::Stdio;
use crate::terminal;

/// One side of a child's streams, close-on-exec. The parent's ends are non-blocking. The child's ends
/// are blocking, and dropped as soon as the child has its copies, because a pipe or terminal ends only
/// when its last writer is closed.
#[derive(Debug)]
pub(crate) struct StdioEnds {
    /// `None` is `/dev/null`.
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Arc<OwnedFd>,
    /// `None` for a terminal: `stdout` then serves all three streams.
    pub(crate) stderr: Option<OwnedFd>,
}

/// Opens the streams of a child. Returns the parent's ends and the child's.
pub(crate) fn open(stdio: Stdio) -> io::Result<(StdioEnds, StdioEnds)> {
    let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
    match stdio {
        Stdio::Pipes { stdin } => {
            let (their_stdin, stdin) = stdin.then(pipe).transpose()?.unzip();
            let (stdout, their_stdout) = pipe()?;
            let (stderr, their_stderr) = pipe()?;
            for ours in stdin.iter().chain([&stdout, &stderr]) {
                rustix::io::ioctl_fionbio(ours, true)?;
            }
            let ours = StdioEnds::new(stdin, stdout, Some(stderr));
            Ok((
                ours,
                StdioEnds::new(their_stdin, their_stdout, Some(their_stderr)),
            ))
        }
        Stdio::Pty { size } => {
            let (master, slave) = terminal::open(size)?;
            Ok((
                StdioEnds::new(None, master, None),
                StdioEnds::new(None, slave, None),
            ))
        }
    }
}

impl StdioEnds {
    fn new(stdin: Option<OwnedFd>, stdout: OwnedFd, stderr: Option<OwnedFd>) -> Self {
        Self {
            stdin,
            stdout: Arc::new(stdout),
            stderr,
        }
    }

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
