//! What to start.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use outpost_process::Size;
use outpost_sandbox::policy::Policy;

/// What the child's three descriptors are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// Pipes; standard input is at its end unless it is asked for.
    Pipes {
        /// Whether input can be written.
        stdin: bool,
    },
    /// A terminal of this size.
    Pty(Size),
}

/// A process to be started.
#[derive(Clone, Debug)]
pub struct Start {
    /// The client's own name for it.
    pub id: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// What the child sees as its own name, where it isn't the program's.
    pub arg0: Option<String>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// What it is confined to; none to run free. What can't be enforced in full
    /// doesn't start.
    pub sandbox: Option<Policy>,
    /// Pipes or a terminal.
    pub terminal: Terminal,
    /// Kept with the process, never interpreted.
    pub metadata: BTreeMap<String, String>,
    /// When this is over the tree is killed, and the exit code is 124.
    pub timeout: Option<Duration>,
    /// How long its streams are read on after its exit, while somebody else
    /// holds them open; then they are given up. Without it: until they end.
    pub drain: Option<Duration>,
    /// Own retention, up to the server's.
    pub retain_bytes: Option<usize>,
    /// The grace of a terminate that names none.
    pub kill_grace: Duration,
}

/// What a process was started as, for as long as it is known.
#[derive(Clone, Debug)]
pub struct About {
    /// The client's own name for it.
    pub id: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// Whether it runs on a terminal.
    pub tty: bool,
    /// Whether it was started with an input that can be written.
    pub takes_input: bool,
    /// What the client wanted kept with it.
    pub metadata: BTreeMap<String, String>,
    /// When it was asked for.
    pub started_at: SystemTime,
    /// Its place among all that its session was ever asked for. Clocks can't tell:
    /// several have room in one tick, and they are set back.
    pub order: u64,
    /// The grace of a terminate that names none.
    pub(crate) kill_grace: Duration,
}

impl About {
    pub(crate) fn new(start: &Start, order: u64) -> Self {
        About {
            id: start.id.clone(),
            argv: start.argv.clone(),
            cwd: start.cwd.clone(),
            tty: matches!(start.terminal, Terminal::Pty(_)),
            takes_input: start.terminal != Terminal::Pipes { stdin: false },
            metadata: start.metadata.clone(),
            started_at: SystemTime::now(),
            order,
            kill_grace: start.kill_grace,
        }
    }
}
