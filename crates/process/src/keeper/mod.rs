//! Trees that are kept by a process of our own: for hosts where no cgroup can be made.
//!
//! An orphan goes to the nearest ancestor that is a *subreaper*. A **keeper** is one. It stands
//! between the server and one program, and whatever comes of that program, however it forks, leaves
//! its group and its session and loses its parents, is below its keeper and can be named by it. It
//! kills all of that when it is told to, or when its socket ends: a server that is gone, even by
//! SIGKILL, leaves nothing.
//!
//! Keepers are forked by their **mother**, a process the server starts once: its own program again,
//! with nothing open and one thread, so that a fork is cheap. She is a subreaper too and gets what
//! a keeper leaves that was itself killed; that she kills. She is asked for a keeper before there is
//! a program for it, by a message with the keeper's end of a socket, and has no part in the rest. A
//! keeper whose program has left nobody behind can have another one, so most starts take no fork.
//!
//! The **tether** is the server's end. Over it goes the program, with the three streams; back comes
//! its number or its failure, and later how it ended. The leader stays a zombie until the server
//! says that it doesn't need the number any more, as a child of its own would.
//!
//! - in a mother: [`mother`], and [`ways`], what this host can do
//! - in a keeper: [`keep`], its life; [`family`] names who is below, [`hunt`] kills them
//! - in both: [`pause`], standing still
//! - in the server: [`command`], what to start; [`nest`], the handle on the mother; [`tether`]
//! - between them: [`socket`], [`request`], [`message`]

mod command;
mod family;
mod hunt;
mod keep;
mod message;
mod mother;
mod nest;
mod pause;
mod request;
mod socket;
mod tether;
mod ways;

use std::io::{self, Write};
use std::process::ExitCode;

use rustix::net::SocketType;

pub use command::KeeperCommand;
pub(crate) use message::Order;
pub(crate) use nest::Nest;
pub(crate) use request::Request;
pub(crate) use tether::{Refusal, Tether};

use mother::{Mother, Role};

/// What the program of a [`KeeperCommand`] has to do, and all it has to do. It must not have started
/// a thread.
///
/// Returns when the server and everything it has started are gone, and in each keeper when its own
/// tree is.
pub fn main() -> ExitCode {
    match live() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "cannot keep process trees: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Somebody has started this by hand.
#[derive(Debug, thiserror::Error)]
#[error("this is for a server to start, which is then on the other side of standard input")]
struct NoServer;

fn live() -> io::Result<()> {
    let stdin = rustix::stdio::stdin();
    if rustix::net::sockopt::socket_type(stdin) != Ok(SocketType::SEQPACKET) {
        return Err(io::Error::other(NoServer));
    }
    let server = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
    rustix::stdio::dup2_stdin(rustix::stdio::stdout())?;
    match Mother::new(server)?.run() {
        Role::Done => {}
        Role::Keeper(server, ways) => keep::keep(server, ways),
    }
    Ok(())
}
