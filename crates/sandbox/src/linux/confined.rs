//! A program that is to be confined, and what is started instead.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::hold::Hold;
use super::line::Line;
use super::said::Said;

/// What is to be executed: runs of strings that end in NUL.
#[derive(Clone, Debug)]
pub struct Program {
    /// Where it may be, in the order of the search.
    pub candidates: Vec<u8>,
    /// Its arguments, its own name first.
    pub argv: Vec<u8>,
    /// Its whole environment.
    pub env: Vec<u8>,
    /// Where it starts.
    pub cwd: PathBuf,
}

/// What bubblewrap has for itself.
#[derive(Debug)]
pub struct Own {
    /// What has to be open for as long as it is there, if anything.
    pub kept: Option<OwnedFd>,
    /// Where it may say something.
    pub words: OwnedFd,
}

/// What to start instead of the program, and what to do meanwhile.
#[derive(Debug)]
pub struct Confined {
    /// Where it is.
    pub program: PathBuf,
    /// Its arguments, its own name first.
    pub argv: Vec<OsString>,
    /// Its environment.
    pub env: Vec<(OsString, OsString)>,
    /// What it has to find behind its streams, in this order. To be closed here once it runs.
    pub passed: Vec<OwnedFd>,
    /// What it has instead of streams: then the three streams are for whoever it carries, and are to
    /// come behind what is passed. To be closed here as well.
    pub own: Option<Own>,
    /// What it says there.
    pub said: Option<Said>,
    /// Where it says that the program runs, or why not.
    pub line: Line,
    /// To be kept until nothing of the process is left.
    pub hold: Hold,
    /// Where something stands inside only so that nothing can be made there.
    pub absent: Vec<PathBuf>,
}

impl Program {
    /// No program: the last stage stays, and serves over its line.
    #[must_use]
    pub fn none() -> Self {
        Program {
            candidates: Vec::new(),
            argv: Vec::new(),
            env: Vec::new(),
            cwd: PathBuf::from("/"),
        }
    }
}
