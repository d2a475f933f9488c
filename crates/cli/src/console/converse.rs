//! A process and the streams of this program, until one of them is done.

use std::io;

use outpost_client::{Error, Process, Remote};
use tokio::task::JoinHandle;

use super::{Notice, Signals, Typed, printed, typed};

/// Who talks with what.
pub(crate) struct Conversation<'a> {
    pub(crate) process: &'a Process,
    /// The server it is on, whose connection may come and go.
    pub(crate) remote: Option<&'a Remote>,
    /// Whether the process is on a terminal, which follows the size of ours.
    pub(crate) tty: bool,
    /// What is passed on to it, if anything.
    pub(crate) typed: Option<Typed>,
    /// What has a lower number was written before we came.
    pub(crate) since: u64,
    pub(crate) notice: Notice,
}

/// How a conversation ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The process has exited, and everything it wrote has been written here.
    Exited(i32),
    /// Somebody typed the key to leave it.
    Detached,
    /// Nothing more will be heard of it.
    Failed(String),
    /// What it wrote can't be written here.
    Unheard(io::Error),
    /// A signal could not be passed on, and a second one came.
    GivenUp,
}

/// Ends a task with whoever waits for it.
struct Printing(JoinHandle<Ending>);

impl Drop for Printing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Connects the streams, and waits for the end.
pub(crate) async fn converse(conversation: Conversation<'_>, signals: &mut Signals) -> Ending {
    let Conversation {
        process,
        remote,
        tty,
        typed,
        since,
        notice,
    } = conversation;
    let mut events = process.events();
    // A task of its own: while standard output is stuck, keys and signals are not.
    let mut printing = Printing(tokio::spawn(async move {
        printed::print(&mut events, since).await
    }));
    tokio::select! {
        ending = &mut printing.0 => ending.unwrap_or_else(|error| Ending::Failed(error.to_string())),
        () = detached(typed, process, notice) => Ending::Detached,
        () = signals.pass_on(process, tty) => Ending::GivenUp,
        () = notice.follow(remote) => Ending::GivenUp,
    }
}

/// Passes on what is typed; returns if that was the wish to leave.
async fn detached(typed: Option<Typed>, process: &Process, notice: Notice) {
    if let Some(typed) = typed {
        match typed.pass_on(process).await {
            Ok(typed::End::Detached) => return,
            // The process hears of a lost connection too, and says so.
            Ok(typed::End::Input) | Err(Error::Disconnected { .. }) => {}
            Err(error) => notice.say(&format!("input can't be passed on: {error}")),
        }
    }
    std::future::pending::<()>().await;
}
