//! The description of a program to start.

#[cfg(doc)]
use crate::Rlimits;
use outpost_types::{ResourceLimits, TerminalSize};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// A program with everything it is given. It inherits nothing else.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program and its arguments; must not be empty. A program without a slash is looked up in
    /// the `PATH` of [`Command::env`], and in `/usr/local/bin:/usr/bin:/bin` if that has no `PATH`.
    pub argv: Vec<OsString>,
    /// The name that the program sees instead of `argv[0]`.
    pub arg0: Option<OsString>,
    /// The working directory. Relative entries of `PATH` are relative to it.
    pub cwd: PathBuf,
    /// The whole environment, in this order.
    pub env: Vec<(OsString, OsString)>,
    /// Pipes or a terminal.
    pub stdio: Stdio,
    /// Limits on its resources and those of its descendants. If it is a wrapper, only those that a
    /// cgroup enforces are set here: the wrapper sets the others for the program, as [`Rlimits`].
    pub limits: ResourceLimits,
    /// Descriptors that it gets, from [`FIRST_PASSED_FD`] on. At most [`MAX_PASSED_FDS`].
    pub passed: Vec<Arc<OwnedFd>>,
    /// Set if the program only wraps another program.
    pub wrapper: Option<Wrapper>,
}

/// The number of the first of [`Command::passed`] in the program.
pub const FIRST_PASSED_FD: i32 = 3;

/// The maximum number of [`Command::passed`] descriptors.
pub const MAX_PASSED_FDS: usize = 11;

/// Options for a program that wraps another program, as bubblewrap wraps a sandboxed program.
///
/// Signals to the process group are meant for the wrapped program, so the wrapper ignores all signals
/// that can be ignored except `SIGCHLD`. It gets its own session, from which the server's terminal
/// cannot be reached.
#[derive(Clone, Debug)]
pub struct Wrapper {
    /// The wrapper's own stdio. If set, the wrapped program's streams are passed after
    /// [`Command::passed`], because the wrapper may outlive it and would otherwise hold the pipes
    /// open.
    pub own: Option<WrapperStdio>,
}

/// The standard streams of a wrapper itself.
#[derive(Clone, Debug)]
pub struct WrapperStdio {
    /// A descriptor that stays open while the wrapper runs, in place of stdin. It is never read.
    pub held: Option<Arc<OwnedFd>>,
    /// The wrapper's stderr.
    pub stderr: Arc<OwnedFd>,
}

/// The connection of a child's standard streams.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Stdio {
    /// Separate pipes for stdout and stderr. The child leads its own process group.
    Pipes {
        /// Whether stdin is a pipe too; otherwise it is `/dev/null`.
        stdin: bool,
    },
    /// One terminal for all three. The child leads its own session with that controlling terminal.
    Pty {
        /// The size the terminal has before the program runs.
        size: TerminalSize,
    },
}
