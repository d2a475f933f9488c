//! `outpost attach`: connects this terminal with detached work.

use std::{
    io::{self, IsTerminal as _, stdin},
    process::ExitCode,
};

use anyhow::Context;
use outpost_client::{
    DeliveryMode, Executor as _, Process, ProcessState, RemoteExecutor, RemoteOptions,
};
use rustix::io::Errno;

use crate::{
    args::{On, ended_by_limit},
    console::{
        self, Attachment, EscapeKey, Key, Notice, OnTermination, Outcome, RawMode, Signals,
        StdinForwarder, window_size,
    },
    detached::{self, FoundProcess, IfAttached},
    endpoint::Endpoint,
    exit,
    render::out::{note, note_below},
};

/// Arguments of `outpost attach`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost attach k3                       a unique prefix of the id
  outpost attach --detach-key ^q k3xabcde")]
pub(crate) struct Attach {
    /// The key that detaches: a letter or sign with Ctrl
    #[arg(long, value_name = "KEY", default_value_t = Key::DETACH)]
    pub(crate) detach_key: Key,

    #[command(flatten)]
    pub(crate) on: On,

    /// The process id, or a prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

/// Attaches. The exit code is that of the process, if it exits meanwhile.
pub(crate) async fn attach(args: &Attach) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let server = args.on.endpoint()?;
    let on = server.as_ref();
    let opening = async {
        let found = detached::open(on, &args.id, IfAttached::Take).await?.found;
        let remote = take_over(on, &found).await?;
        let process = remote.attach(&found.entry.process_id, 0).await;
        let process = process.with_context(|| format!("cannot attach to {}", found.name()))?;
        anyhow::Ok((found, remote, process))
    };
    let (found, remote, process) = match signals.unless_ended(opening).await {
        Ok(opened) => opened?,
        Err(signal) => return Ok(exit::of_signal(signal)),
    };
    let outcome = attach_stdio(args, &found, &process, &remote, &mut signals).await?;
    let code = report(on, &found, &process, &remote, outcome).await;
    drop(process);
    remote.close().await?;
    Ok(code)
}

/// Reports the outcome. The work continues in any case.
async fn report(
    on: Option<&Endpoint>,
    found: &FoundProcess,
    process: &Process,
    remote: &RemoteExecutor,
    outcome: Outcome,
) -> ExitCode {
    let id = found.name();
    // The cursor may be anywhere on the line.
    let print = if found.entry.tty || stdin().is_terminal() {
        note_below
    } else {
        note
    };
    match outcome {
        Outcome::Detached => {
            let again = detached::attach_command(on, found);
            print(&format!(
                "detached from {id}, which continues; `{again}` attaches again"
            ));
            ExitCode::SUCCESS
        }
        // The terminal or the reader is gone.
        Outcome::OutputError(error) if is_closed(&error) => ExitCode::SUCCESS,
        Outcome::OutputError(error) => {
            print(&format!("cannot write its output: {error}"));
            ExitCode::FAILURE
        }
        Outcome::Failed(_)
            if detached::has_been_taken_over(&remote.connection_state().borrow()) =>
        {
            print(&format!("another terminal has taken over {id}"));
            ExitCode::FAILURE
        }
        outcome => {
            let has_exited = matches!(
                outcome,
                Outcome::Exited(_) | Outcome::ExitedWithLeftovers(_)
            );
            let code = exit::after(process, outcome).await;
            if has_exited
                && let Ok(exit) = process.wait().await
                && let Some(limit) = ended_by_limit(exit.ended_by)
            {
                print(&format!("a limit ended {id}: {limit}"));
            }
            code
        }
    }
}

/// Returns whether the reader or the terminal has been closed.
fn is_closed(error: &io::Error) -> bool {
    let hung_up = error.raw_os_error() == Some(Errno::IO.raw_os_error());
    hung_up || error.kind() == io::ErrorKind::BrokenPipe
}

/// Takes over the session of a process.
async fn take_over(on: Option<&Endpoint>, found: &FoundProcess) -> anyhow::Result<RemoteExecutor> {
    if found.attached {
        note("taking over from another terminal");
    }
    let options = RemoteOptions::default()
        .client_name("outpost attach")
        .resume(found.session_id.clone())
        .takeover(true)
        // The process must not wait for this client's acknowledgements.
        .delivery(DeliveryMode::Push);
    let remote = detached::connect(on, options).await;
    remote.with_context(|| format!("cannot attach to {}", found.name()))
}

async fn attach_stdio(
    args: &Attach,
    found: &FoundProcess,
    process: &Process,
    remote: &RemoteExecutor,
    signals: &mut Signals,
) -> anyhow::Result<Outcome> {
    let tty = found.entry.tty;
    let running = matches!(
        found.entry.state,
        ProcessState::Starting | ProcessState::Running
    );
    let terminal = stdin().is_terminal();
    if terminal && running {
        note(&format!("{} detaches", args.detach_key));
    }
    let raw_mode = match (running, tty) {
        (true, true) => RawMode::set()?,
        (true, false) => RawMode::set_line_end(args.detach_key)?,
        (false, _) => None,
    };
    if tty && running {
        redraw(process).await;
    }
    let attachment = Attachment {
        process,
        remote: Some(remote),
        tty,
        // Input that a script has left over isn't meant for this process.
        stdin: (terminal && running)
            .then(|| StdinForwarder::read(Some(EscapeKey::Detach(args.detach_key)))),
        since: found.entry.next_seq,
        // The session of a detached process has a long lease, so it survives a stopped command.
        held_while_stopped: false,
        on_termination: OnTermination::Detach,
        until: None,
        notice: Notice::next_to(raw_mode.as_ref(), None),
    };
    Ok(console::attach(attachment, signals).await)
}

/// Sets the size of the process's terminal to ours. Changes it twice, so that a full-screen program
/// redraws even if the size is the same.
async fn redraw(process: &Process) {
    if let Some((rows, cols)) = window_size() {
        // Older servers can't resize; the screen stays as it is.
        let _ = process.resize(rows.max(2) - 1, cols).await;
        let _ = process.resize(rows, cols).await;
    }
}
