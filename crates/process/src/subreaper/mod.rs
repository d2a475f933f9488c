//! Process trees supervised by a subreaper process, for hosts where no cgroup can be created.
//!
//! The kernel reparents an orphan to its nearest ancestor that is a *subreaper* (see
//! `PR_SET_CHILD_SUBREAPER` in `prctl(2)`). A **subreaper** process runs between the server and one
//! program. All descendants of that program stay below the subreaper, even if they fork repeatedly,
//! leave their process group or session, or lose their parents, so the subreaper can enumerate them.
//! The subreaper kills all of them on request, or when its socket closes: a server that dies, even by
//! SIGKILL, leaves no processes.
//!
//! Subreapers are forked by the **factory**, a process that the server starts once: its own
//! executable again, with no open descriptors and a single thread, so that forking is cheap. The
//! factory is a subreaper too. It inherits and kills the processes of a subreaper that was itself
//! killed. The server requests a subreaper before it has a program for it, with a message that carries
//! the subreaper's end of a socket; the factory is not involved after that. A subreaper whose program
//! left no descendants is reused, so most starts need no fork.
//!
//! The server holds a **handle** for each subreaper. It sends the program and its three streams, and
//! receives the pid or the failure and later the exit status. The leader stays a zombie until the
//! server says that it no longer needs the pid, as a direct child of the server would.
//!
//! - in the factory: [`factory`]
//! - in a subreaper: [`reaper`], its main loop; [`descendants`] enumerates processes, [`tree_killer`]
//!   kills them
//! - in the server: [`pool`], the factory's handle and idle subreapers; [`handle`], one subreaper;
//!   [`supervised_tree`], its tree; [`orphans`], the processes of killed subreapers
//! - between them: [`socket`], [`message`]

mod descendants;
mod factory;
mod handle;
mod message;
mod orphans;
mod pool;
mod reaper;
mod socket;
mod supervised_tree;
mod tree_killer;

use std::io::{self, Write};
use std::process::ExitCode;

use rustix::net::SocketType;

pub(crate) use handle::{ReaperHandle, StartFailure};
pub(crate) use message::{ControlMessage, StartRequest};
pub use pool::ReaperCommand;
pub(crate) use pool::ReaperPool;

pub(crate) use supervised_tree::SubreaperTree;

use factory::ReaperFactory;

/// Runs the subreaper factory. The program of a [`ReaperCommand`] must call this, and nothing else,
/// before it has started a second thread.
///
/// Returns when the server and all supervised processes are gone, and in each forked subreaper when
/// its own tree is gone.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "cannot supervise process trees: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The program was started by hand.
#[derive(Debug, thiserror::Error)]
#[error("standard input is not a server's socket; this command is started by the server only")]
struct NoServer;

fn run() -> io::Result<()> {
    let stdin = rustix::stdio::stdin();
    if rustix::net::sockopt::socket_type(stdin) != Ok(SocketType::SEQPACKET) {
        return Err(io::Error::other(NoServer));
    }
    let server = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
    rustix::stdio::dup2_stdin(rustix::stdio::stdout())?;
    if let Some((server, features)) = ReaperFactory::new(server)?.run() {
        reaper::run(server, features);
    }
    Ok(())
}
