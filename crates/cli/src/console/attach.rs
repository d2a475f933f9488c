//! Connects this program's stdio and signals with a process.

use std::io;

use outpost_client::{Error, Process, RemoteExecutor, Signal};
use tokio::{sync::watch, time::Instant};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Notice, OnTermination, Signals, StdinForwarder, output::OutputPrinter, signals::stop_signal,
    stdin::InputEnd,
};
use crate::render::errors;

/// A process, and what to connect with it.
pub(crate) struct Attachment<'a> {
    pub(crate) process: &'a Process,
    /// The server that runs it, if any.
    pub(crate) remote: Option<&'a RemoteExecutor>,
    /// Whether the process has a terminal, which follows the size of ours.
    pub(crate) tty: bool,
    /// Forwards stdin, if wanted.
    pub(crate) stdin: Option<StdinForwarder>,
    /// Events with a lower number happened before attaching.
    pub(crate) since: u64,
    /// Whether the session must outlast a stop of this program by SIGTSTP.
    pub(crate) held_while_stopped: bool,
    /// Fate of the process when this program is asked to exit.
    pub(crate) on_termination: OnTermination,
    /// Deadline of the process, in case the server doesn't enforce it.
    pub(crate) until: Option<Instant>,
    pub(crate) notice: Notice,
}

/// Outcome of an attachment.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The process exited, and all of its output has been written.
    Exited(i32),
    /// The process exited, and leftover processes hold its streams open.
    ExitedWithLeftovers(i32),
    /// The user detached.
    Detached,
    /// The process or the connection failed.
    Failed(String),
    /// The output of the process can't be written.
    OutputError(io::Error),
    /// Two signals asked for the end, and the process was killed.
    Killed(Signal),
    /// The server is unreachable, and the user sent this signal or pressed the escape key.
    Abandoned(Signal),
}

/// Connects the streams and waits for the outcome.
pub(crate) async fn attach(mut attachment: Attachment<'_>, signals: &mut Signals) -> Outcome {
    let stdin = attachment.stdin.take();
    let Attachment {
        process,
        remote,
        on_termination,
        notice,
        ..
    } = attachment;
    let stop = stop_signal(&attachment);
    let (exit, exited) = watch::channel(None);
    let printer = OutputPrinter {
        since: attachment.since,
        drains_forever: on_termination == OnTermination::Detach,
        until: attachment.until,
        exit,
    };
    // A separate task, so that a blocked stdout doesn't block keys and signals.
    let printing = tokio::spawn(printer.print(process.events()));
    tokio::select! {
        outcome = AbortOnDropHandle::new(printing) => {
            outcome.unwrap_or_else(|error| Outcome::Failed(error.to_string()))
        }
        () = escaped(stdin, process, notice) => match on_termination {
            OnTermination::Detach => Outcome::Detached,
            OnTermination::Terminate | OnTermination::TerminateOrKill => {
                Outcome::Abandoned(Signal::Interrupt)
            }
        },
        outcome = signals.forward(&attachment, &exited, stop) => outcome,
        () = notice.follow(remote) => Outcome::Abandoned(Signal::Interrupt),
    }
}

/// Forwards stdin; returns if the user pressed the escape key.
async fn escaped(stdin: Option<StdinForwarder>, process: &Process, notice: Notice) {
    let Some(mut stdin) = stdin else {
        return std::future::pending().await;
    };
    match stdin.forward(process).await {
        Ok(InputEnd::Escaped) => return,
        // The event stream reports a lost connection too.
        Ok(InputEnd::Eof) | Err(Error::Disconnected { .. }) => {}
        Err(error) => {
            let why = errors::client_message(&error);
            notice.print(&format!("cannot forward stdin: {why}"));
        }
    }
    stdin.escaped().await;
}
