//! `outpost run`: runs a command locally or on a server.

mod detach;
mod environment;

use std::{
    io::{self, IsTerminal as _, stdout},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use outpost_client::{Executor, Process, RemoteExecutor, RemoteOptions, Sandbox, Start, Terminate};
use outpost_engine::sandbox::Level;
use tokio::time::{Instant, timeout};

use super::runtime::run_command;
use crate::{
    args::Run,
    console::{
        Attachment, EscapeKey, Key, Notice, OnLeave, Outcome, RawMode, Signals, StdinForwarder,
        attach, window_size,
    },
    disconnect::{Leftovers, disconnect},
    env_args::NotUnicode,
    exit,
    render::{errors, out::note},
    target,
};

/// Timeout for disconnecting after a second signal.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);

/// An ended command.
struct Finished {
    code: ExitCode,
    /// Whether a forwarded SIGINT ended it.
    interrupted: bool,
}

/// Runs the command. The exit code is its own.
pub(crate) fn run(args: &Run) -> ExitCode {
    run_in(args, &Confinement::default())
}

/// Runs the command locally in a sandbox.
pub(crate) fn confined(args: &Run, sandbox: Option<Sandbox>, level: Level) -> ExitCode {
    run_in(args, &Confinement { sandbox, level })
}

/// The sandbox of a command.
#[derive(Debug, Default)]
struct Confinement {
    /// None for full access.
    sandbox: Option<Sandbox>,
    level: Level,
}

fn run_in(args: &Run, confinement: &Confinement) -> ExitCode {
    let mut interrupted = false;
    let code = run_command(async {
        let ran = if args.detach {
            detach::detach(args).await
        } else {
            run_attached(args, confinement).await.map(|finished| {
                interrupted = finished.interrupted;
                finished.code
            })
        };
        Ok(ran.unwrap_or_else(|error| exit::with_error(&error)))
    });
    // A shell stops a loop only if its child died of SIGINT, not if it exited.
    if interrupted && outpost_engine::restore_sigint().is_ok() {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
    }
    code
}

/// Runs the command with this program's stdio.
async fn run_attached(args: &Run, confinement: &Confinement) -> anyhow::Result<Finished> {
    let not_started = |code| Finished {
        code,
        interrupted: false,
    };
    // Before the start: later signals are for the command.
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    // Before connecting: an invalid argument needs no server.
    let start = program(args)?;
    let (executor, remote) = tokio::select! {
        executor = executor(args, confinement.level) => executor?,
        signal = signals.ending() => return Ok(not_started(exit::of_signal(signal))),
    };
    let start = with_stdio(args, start);
    let start = match confinement.sandbox.clone() {
        Some(sandbox) => start.sandbox(sandbox),
        None => start,
    };
    let started = tokio::select! {
        started = executor.start(start) => {
            started.map_err(|error| exit::not_started(&args.command[0], &error))
        }
        signal = signals.ending() => Err(exit::of_signal(signal)),
    };
    let process = match started {
        Ok(process) => process,
        Err(code) => {
            // The result of the start may be unknown; disconnecting ends the process.
            let leaving = leave(&*executor, remote.as_ref(), Leftovers::UnknownStart);
            let _ = signals.unless_ended(leaving).await;
            return Ok(not_started(code));
        }
    };
    let (code, interrupted, urgency) =
        match attach_stdio(args, &process, remote.as_ref(), &mut signals).await {
            Ok(outcome) => {
                let died = matches!(outcome, Outcome::Exited(code) if exit::is_interrupted(code));
                let urgency = ExitUrgency::after(&outcome);
                let code = exit::after(&process, outcome).await;
                (code, died && signals.interrupted(), urgency)
            }
            Err(error) => {
                let _ = process.terminate().await;
                (exit::with_error(&error), false, ExitUrgency::Normal)
            }
        };
    if let Some(remote) = remote.as_ref().filter(|_| urgency == ExitUrgency::Normal) {
        end_tree(&process, remote).await;
    }
    drop(process);
    // Leftover processes end here. A second signal skips the wait: local ones are killed with this
    // program, remote ones end with the session's lease.
    let leaving = async {
        match urgency {
            ExitUrgency::Normal | ExitUrgency::Immediate => {
                leave(&*executor, remote.as_ref(), Leftovers::Processes).await;
            }
            ExitUrgency::Abandon => close(&*executor).await,
        }
    };
    if urgency == ExitUrgency::Immediate {
        let _ = timeout(LEAVE_TIMEOUT, leaving).await;
    } else {
        let _ = signals.unless_ended(leaving).await;
    }
    Ok(Finished { code, interrupted })
}

/// Urgency of the exit after the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExitUrgency {
    Normal,
    /// After a second signal.
    Immediate,
    /// The server is unreachable, and the user gave up.
    Abandon,
}

impl ExitUrgency {
    fn after(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Killed(_) => ExitUrgency::Immediate,
            Outcome::Abandoned(_) => ExitUrgency::Abandon,
            _ => ExitUrgency::Normal,
        }
    }
}

/// Closes the executor, and disconnects from the server.
async fn leave(executor: &dyn Executor, remote: Option<&RemoteExecutor>, leftovers: Leftovers) {
    match remote {
        Some(remote) => disconnect(remote, leftovers).await,
        None => close(executor).await,
    }
}

async fn close(executor: &dyn Executor) {
    if let Err(error) = executor.close().await {
        note(&errors::client_message(&error));
    }
}

/// Ends leftover processes on a server that can end trees but not sessions.
async fn end_tree(process: &Process, remote: &RemoteExecutor) {
    let can = remote.capabilities();
    if can.terminate_tree && !can.process_list {
        let tree = Terminate::new().tree();
        let _ = timeout(LEAVE_TIMEOUT, process.terminate_with(tree)).await;
    }
}

/// The working directory of this program.
fn current_directory() -> anyhow::Result<PathBuf> {
    std::env::current_dir().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => anyhow::anyhow!(
            "the current directory has been deleted; change to another one, or use --cwd"
        ),
        _ => anyhow::Error::new(error).context("cannot determine the current directory"),
    })
}

/// The working directory of the command, as an absolute path.
pub(super) fn directory(cwd: Option<&str>) -> anyhow::Result<PathBuf> {
    let cwd = PathBuf::from(cwd.unwrap_or_default());
    if cwd.is_absolute() {
        Ok(cwd)
    } else {
        Ok(current_directory()?.join(cwd).components().collect())
    }
}

/// The local executor, or the server that `--on` names.
async fn executor(
    args: &Run,
    level: Level,
) -> anyhow::Result<(Arc<dyn Executor>, Option<RemoteExecutor>)> {
    let Some(on) = &args.on.on else {
        let local = target::local(directory(args.cwd.as_deref())?, level)?;
        return Ok((Arc::new(local), None));
    };
    let options = RemoteOptions::default().client_name("outpost run");
    let remote = target::connect(on, options).await?;
    Ok((Arc::new(remote.clone()), Some(remote)))
}

/// The command with its environment and working directory.
fn program(args: &Run) -> Result<Start, NotUnicode> {
    let start = Start::new(args.command.iter().cloned());
    let start = match args.on.on {
        // The local executor already has the working directory.
        None => return environment::inherited(start, &args.env),
        Some(_) => environment::for_server(start, args.tty, &args.env)?,
    };
    Ok(match &args.cwd {
        Some(cwd) => start.cwd(cwd),
        None => start,
    })
}

/// Adds stdin, a terminal and a timeout.
fn with_stdio(args: &Run, start: Start) -> Start {
    let start = match (args.tty, window_size()) {
        (true, Some((rows, cols))) => start.size(rows, cols),
        (true, None) => start.tty(),
        (false, _) if StdinForwarder::is_wanted(args.interactive) => start.stdin(),
        (false, _) => start,
    };
    match &args.timeout {
        Some(timeout) => start.timeout(timeout.0),
        None => start,
    }
}

/// Connects our stdio with the command's.
async fn attach_stdio(
    args: &Run,
    process: &Process,
    remote: Option<&RemoteExecutor>,
    signals: &mut Signals,
) -> anyhow::Result<Outcome> {
    // In raw mode the output must be shown on this terminal.
    let raw_mode = if args.tty && stdout().is_terminal() {
        RawMode::set()?
    } else {
        None
    };
    // In raw mode Ctrl-C goes to the command, which doesn't get it while the connection is lost.
    let escape_key = match (&raw_mode, remote) {
        (Some(_), Some(remote)) => Some(EscapeKey::GiveUp(Key::DETACH, remote.connection_state())),
        _ => None,
    };
    let hint = escape_key.as_ref().map(|_| "Ctrl-] gives up");
    let wanted = StdinForwarder::is_wanted(args.interactive || args.tty);
    let until = args
        .timeout
        .and_then(|time| Instant::now().checked_add(time.0));
    let attachment = Attachment {
        process,
        remote,
        tty: args.tty,
        stdin: wanted.then(|| StdinForwarder::read(escape_key)),
        since: 0,
        on_leave: OnLeave::Terminate,
        until,
        notice: Notice::next_to(raw_mode.as_ref()).with_escape_hint(hint),
    };
    Ok(attach(attachment, signals).await)
}
