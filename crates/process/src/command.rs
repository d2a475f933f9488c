//! What is to be started.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// A program with everything it gets from us; nothing else reaches it.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program and its arguments; must not be empty. A program without a slash is looked up in
    /// the `PATH` of [`Command::env`], and in `/usr/local/bin:/usr/bin:/bin` when there is none.
    pub argv: Vec<OsString>,
    /// What the program sees as its own name instead of `argv[0]`.
    pub arg0: Option<OsString>,
    /// The directory it starts in. Relative entries of `PATH` are relative to it.
    pub cwd: PathBuf,
    /// The whole environment, in this order.
    pub env: Vec<(OsString, OsString)>,
    /// What its standard streams are.
    pub stdio: Stdio,
    /// Set for a program that only carries another one.
    pub carrier: Option<Carrier>,
}

/// How many descriptors a [`Carrier`] can be given.
pub const MOST_CARRIED: usize = 3;

/// What a program gets that only carries the one that is meant, as bubblewrap carries what is
/// confined. Signals for its group are for the other one, so it ignores all that can be ignored but
/// `SIGCHLD`; and it is in a session of its own, where the server's terminal can't be reached.
#[derive(Clone, Debug)]
pub struct Carrier {
    /// What it finds open behind its streams, from descriptor 3 on. At most [`MOST_CARRIED`].
    pub passed: Vec<Arc<OwnedFd>>,
    /// What it has itself where the three streams are for the one that is meant. They come behind what
    /// is passed then: who carries may stay for longer than that one, and a stream ends only when nobody
    /// has it open.
    pub own: Option<Own>,
}

/// What a carrier has in the place of streams.
#[derive(Clone, Debug)]
pub struct Own {
    /// What is to be open for as long as it is there, in the place of stdin, from which it doesn't read.
    pub kept: Option<Arc<OwnedFd>>,
    /// Where it may say something: its stderr.
    pub words: Arc<OwnedFd>,
}

/// What a child's three standard streams are connected to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Stdio {
    /// Separate pipes for stdout and stderr; the child leads its own process group.
    Pipes {
        /// Whether stdin is a pipe too; it is `/dev/null` otherwise.
        stdin: bool,
    },
    /// One terminal for all three; the child leads its own session, which the terminal controls.
    Pty {
        /// The size the terminal has before the program runs.
        size: Size,
    },
}

/// The size of a terminal in characters.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub cols: u16,
}
