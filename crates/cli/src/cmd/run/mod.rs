//! `outpost run`: a command, here or on a server, as if it were right here.

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
use outpost_client::{Place, Process, Remote, RemoteOptions, Sandbox, Start, Terminate};
use outpost_engine::sandbox::Level;
use tokio::time::{Instant, timeout};

use super::task::perform;
use crate::{
    args::Run,
    console::{
        Conversation, Ending, Key, Notice, Parting, RawMode, Signals, Typed, WayOut, converse,
        window_size,
    },
    exit,
    farewell::{Remains, take_leave},
    handed_on::NotText,
    render::{out::note, words},
    target,
};

/// How long leaving the place may take once we were told twice to end.
const LEAVE_WITHIN: Duration = Duration::from_millis(500);

/// A command that is over.
struct Over {
    code: ExitCode,
    /// Whether an interrupt that we passed on has ended it.
    interrupted: bool,
}

/// Runs the command; the exit code is its own.
pub(crate) fn run(args: &Run) -> ExitCode {
    run_as(args, &Confinement::default())
}

/// The same here, confined.
pub(crate) fn confined(args: &Run, sandbox: Option<Sandbox>, level: Level) -> ExitCode {
    run_as(args, &Confinement { sandbox, level })
}

/// What a command is confined to.
#[derive(Debug, Default)]
struct Confinement {
    /// None for nothing.
    sandbox: Option<Sandbox>,
    level: Level,
}

fn run_as(args: &Run, confinement: &Confinement) -> ExitCode {
    let mut interrupted = false;
    let code = perform(async {
        let ran = match args.detach {
            true => detach::detach(args).await,
            false => run_here(args, confinement).await.map(|over| {
                interrupted = over.interrupted;
                over.code
            }),
        };
        Ok(ran.unwrap_or_else(|error| exit::with_error(&error)))
    });
    // A shell ends its loop if what it ran died of an interrupt, and goes on if it
    // has merely exited.
    if interrupted && outpost_engine::heed_interrupt().is_ok() {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
    }
    code
}

/// Runs it with our streams as its own.
async fn run_here(args: &Run, confinement: &Confinement) -> anyhow::Result<Over> {
    let without_a_start = |code| Over {
        code,
        interrupted: false,
    };
    // Before anything is started: what comes from now on is for the command.
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    // Before a server hears of us: what can't be said needn't be begun.
    let start = program(args)?;
    let (place, remote) = tokio::select! {
        place = place(args, confinement.level) => place?,
        signal = signals.ending() => return Ok(without_a_start(exit::of_signal(signal))),
    };
    let start = connected(args, start);
    let start = match confinement.sandbox.clone() {
        Some(sandbox) => start.sandbox(sandbox),
        None => start,
    };
    let started = tokio::select! {
        started = place.start(start) => {
            started.map_err(|error| exit::not_started(&args.command[0], &error))
        }
        signal = signals.ending() => Err(exit::of_signal(signal)),
    };
    let process = match started {
        Ok(process) => process,
        Err(code) => {
            // Whether the server has started it may be unknown: then it is ended there.
            let leaving = leave(&*place, remote.as_ref(), Remains::Unknown);
            let _ = signals.unless_ended(leaving).await;
            return Ok(without_a_start(code));
        }
    };
    let (code, interrupted, haste) = match talk(args, &process, remote.as_ref(), &mut signals).await
    {
        Ok(ending) => {
            let died = matches!(ending, Ending::Exited(code) if exit::is_of_interrupt(code));
            let haste = Haste::after(&ending);
            let code = exit::after(&process, ending).await;
            (code, died && signals.interrupted(), haste)
        }
        Err(error) => {
            let _ = process.terminate().await;
            (exit::with_error(&error), false, Haste::None)
        }
    };
    if let Some(remote) = remote.as_ref().filter(|_| haste == Haste::None) {
        end_tree(&process, remote).await;
    }
    drop(process);
    // What the command has left running ends with us. Who can't wait needn't: here it
    // is killed when we are gone, and on a server its session ends some time later.
    let leaving = async {
        match haste {
            Haste::None | Haste::Told => {
                leave(&*place, remote.as_ref(), Remains::Leftovers).await;
            }
            Haste::GivenUp => close(&*place).await,
        }
    };
    if haste == Haste::Told {
        let _ = timeout(LEAVE_WITHIN, leaving).await;
    } else {
        let _ = signals.unless_ended(leaving).await;
    }
    Ok(Over { code, interrupted })
}

/// How much of a hurry we are in once a command is over for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Haste {
    None,
    /// We were told twice to end.
    Told,
    /// Nobody wants to wait for a server that can't be reached.
    GivenUp,
}

impl Haste {
    fn after(ending: &Ending) -> Self {
        match ending {
            Ending::Stopped(_) => Haste::Told,
            Ending::GivenUp(_) => Haste::GivenUp,
            _ => Haste::None,
        }
    }
}

/// Leaves the place, and the server if it is on one.
async fn leave(place: &dyn Place, remote: Option<&Remote>, remains: Remains) {
    match remote {
        Some(remote) => take_leave(remote, remains).await,
        None => close(place).await,
    }
}

async fn close(place: &dyn Place) {
    if let Err(error) = place.close().await {
        note(&words::of_client(&error));
    }
}

/// Ends what a command has left running, on a server that ends trees and no sessions.
async fn end_tree(process: &Process, remote: &Remote) {
    let can = remote.capabilities();
    if can.terminate_tree && !can.process_list {
        let tree = Terminate {
            grace: None,
            tree: true,
        };
        let _ = timeout(LEAVE_WITHIN, process.terminate_with(tree)).await;
    }
}

/// Where we are, for a command that is to run in the same place.
fn here() -> anyhow::Result<PathBuf> {
    std::env::current_dir().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => anyhow::anyhow!(
            "the current directory has been deleted; go elsewhere, or say where with --cwd"
        ),
        _ => anyhow::Error::new(error).context("cannot tell the current directory"),
    })
}

/// The directory to run in, as a path that means the same everywhere on this
/// machine.
pub(super) fn directory(cwd: Option<&str>) -> anyhow::Result<PathBuf> {
    let cwd = PathBuf::from(cwd.unwrap_or_default());
    match cwd.is_absolute() {
        true => Ok(cwd),
        false => Ok(here()?.join(cwd).components().collect()),
    }
}

/// Here, or on the server that was named.
async fn place(args: &Run, level: Level) -> anyhow::Result<(Arc<dyn Place>, Option<Remote>)> {
    let Some(on) = &args.on.on else {
        let local = target::here(directory(args.cwd.as_deref())?, level)?;
        return Ok((Arc::new(local), None));
    };
    let options = RemoteOptions {
        client_name: "outpost run".to_owned(),
        ..RemoteOptions::default()
    };
    let remote = target::connect(on, options).await?;
    Ok((Arc::new(remote.clone()), Some(remote)))
}

/// The command with what it finds around it.
fn program(args: &Run) -> Result<Start, NotText> {
    let start = Start::new(args.command.iter().cloned());
    let start = match args.on.on {
        // Where we are is where the place is.
        None => return environment::ours(start, &args.env),
        Some(_) => environment::theirs(start, args.tty, &args.env)?,
    };
    Ok(match &args.cwd {
        Some(cwd) => start.cwd(cwd),
        None => start,
    })
}

/// The same with streams like ours, as they are now.
fn connected(args: &Run, start: Start) -> Start {
    let start = match (args.tty, window_size()) {
        (true, Some((rows, cols))) => start.size(rows, cols),
        (true, None) => start.tty(),
        (false, _) if Typed::is_wanted(args.interactive) => start.stdin(),
        (false, _) => start,
    };
    match &args.timeout {
        Some(timeout) => start.timeout(timeout.0),
        None => start,
    }
}

/// Connects our streams with the command's until one side is done.
async fn talk(
    args: &Run,
    process: &Process,
    remote: Option<&Remote>,
    signals: &mut Signals,
) -> anyhow::Result<Ending> {
    // Keys are for the command's terminal only if its output is to be seen on ours.
    let raw_mode = match args.tty && stdout().is_terminal() {
        true => RawMode::set()?,
        false => None,
    };
    // On a terminal of its own Ctrl-C is the command's, which isn't there while the
    // connection is lost.
    let way_out = match (&raw_mode, remote) {
        (Some(_), Some(remote)) => Some(WayOut::GiveUp(Key::DETACH, remote.standing())),
        _ => None,
    };
    let said = way_out.as_ref().map(|_| "Ctrl-] gives up");
    let wanted = Typed::is_wanted(args.interactive || args.tty);
    let until = args
        .timeout
        .and_then(|time| Instant::now().checked_add(time.0));
    let conversation = Conversation {
        process,
        remote,
        tty: args.tty,
        typed: wanted.then(|| Typed::read(way_out)),
        since: 0,
        parting: Parting::Ends,
        until,
        notice: Notice::beside(raw_mode.as_ref()).with_way_out(said),
    };
    Ok(converse(conversation, signals).await)
}
