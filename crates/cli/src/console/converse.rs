//! A process and the streams of this program, until one of them is done.

use std::io;

use outpost_client::{Error, Process, Remote, SignalName};
use tokio::{sync::watch, task::JoinHandle, time::Instant};

use super::{
    Notice, Parting, Signals, Typed, printed, printed::Printed, signals::Addressee, typed,
};
use crate::render::words;

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
    /// What becomes of it when we are asked to end.
    pub(crate) parting: Parting,
    /// When its time is over, in case it hasn't been ended for that.
    pub(crate) until: Option<Instant>,
    pub(crate) notice: Notice,
}

/// How a conversation ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The process has exited, and everything it wrote has been written here.
    Exited(i32),
    /// The process has exited, and what it left running holds its streams.
    Outlived(i32),
    /// Somebody wished to leave it.
    Detached,
    /// Nothing more will be heard of it.
    Failed(String),
    /// What it wrote can't be written here.
    Unheard(io::Error),
    /// We were asked twice to end, and the process was killed.
    Stopped(SignalName),
    /// The server can't be reached, and somebody didn't want to wait for it: who
    /// sent this, or typed a key that means as much.
    GivenUp(SignalName),
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
        parting,
        until,
        notice,
    } = conversation;
    let (exit, exited) = watch::channel(None);
    let printed = Printed {
        since,
        lingers: parting == Parting::Leaves,
        until,
        exit,
    };
    let mut events = process.events();
    // A task of its own: while standard output is stuck, keys and signals are not.
    let mut printing = Printing(tokio::spawn(async move {
        printed::print(&mut events, printed).await
    }));
    let addressee = Addressee {
        process,
        remote,
        tty,
        parting,
        exited,
    };
    tokio::select! {
        ending = &mut printing.0 => ending.unwrap_or_else(|error| Ending::Failed(error.to_string())),
        () = left(typed, process, notice) => match parting {
            Parting::Leaves => Ending::Detached,
            Parting::Ends => Ending::GivenUp(SignalName::Interrupt),
        },
        ending = signals.pass_on(addressee) => ending,
        () = notice.follow(remote) => Ending::GivenUp(SignalName::Interrupt),
    }
}

/// Passes on what is typed; returns if that was the wish to leave.
async fn left(typed: Option<Typed>, process: &Process, notice: Notice) {
    let Some(mut typed) = typed else {
        return std::future::pending().await;
    };
    match typed.pass_on(process).await {
        Ok(typed::End::Left) => return,
        // The process hears of a lost connection too, and says so.
        Ok(typed::End::Input) | Err(Error::Disconnected { .. }) => {}
        Err(error) => {
            let why = words::of_client(&error);
            notice.say(&format!("input can't be passed on: {why}"));
        }
    }
    typed.left().await;
}
