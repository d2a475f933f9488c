//! `outpost run`: a command, here or on a server, as if it were right here.

mod detach;
mod environment;

use std::{
    io::{IsTerminal as _, stdout},
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context;
use outpost_client::{Local, LocalOptions, Place, Process, Remote, RemoteOptions, Start};

use super::task::perform;
use crate::{
    args::Run,
    cmd::keeper,
    console::{Conversation, Ending, Notice, RawMode, Signals, Typed, converse, window_size},
    exit, open_files,
    render::out::note,
    target,
};

/// Runs the command; the exit code is its own.
pub(crate) fn run(args: &Run) -> ExitCode {
    perform(async {
        let ran = match args.detach {
            true => detach::detach(args).await,
            false => run_here(args).await,
        };
        Ok(ran.unwrap_or_else(|error| exit::with_error(&error)))
    })
}

/// Runs it with our streams as its own.
async fn run_here(args: &Run) -> anyhow::Result<ExitCode> {
    // Before anything is started: what comes from now on is for the command.
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let (place, remote) = place(args).await?;
    let start = start(args, remote.is_some());
    let process = tokio::select! {
        started = place.start(start) => match started {
            Ok(process) => process,
            Err(error) => return Ok(exit::not_started(&args.command[0], &error)),
        },
        signal = signals.ending() => return Ok(exit::of_signal(signal)),
    };
    let code = match talk(args, &process, remote.as_ref(), &mut signals).await {
        Ok(ending) => exit::after(&process, ending).await,
        Err(error) => {
            let _ = process.terminate().await;
            exit::with_error(&error)
        }
    };
    drop(process);
    // What the command has left running here ends with us.
    if let Err(error) = place.close().await {
        note(&error.to_string());
    }
    Ok(code)
}

/// Here, or on the server that was named.
async fn place(args: &Run) -> anyhow::Result<(Arc<dyn Place>, Option<Remote>)> {
    let Some(on) = &args.on.on else {
        outpost_engine::heed_children().context("cannot undo that SIGCHLD is ignored")?;
        let local = Local::new(LocalOptions {
            keeper: Some(keeper::command()),
            child_open_files: open_files::raise(),
            ..LocalOptions::default()
        })?;
        return Ok((Arc::new(local), None));
    };
    let options = RemoteOptions {
        client_name: "outpost run".to_owned(),
        ..RemoteOptions::default()
    };
    let remote = target::connect(on, options).await?;
    Ok((Arc::new(remote.clone()), Some(remote)))
}

fn start(args: &Run, remote: bool) -> Start {
    let mut start = Start::new(args.command.iter().cloned());
    start = match remote {
        false => environment::ours(start, &args.env),
        true => environment::theirs(start, args.tty, &args.env),
    };
    if args.tty {
        start = match window_size() {
            Some((rows, cols)) => start.size(rows, cols),
            None => start.tty(),
        };
    } else if Typed::is_wanted(args.interactive) {
        start = start.stdin();
    }
    if let Some(cwd) = &args.cwd {
        start = start.cwd(cwd);
    }
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
    let conversation = Conversation {
        process,
        remote,
        tty: args.tty,
        typed: Typed::is_wanted(args.interactive || args.tty).then(|| Typed::read(None)),
        since: 0,
        notice: Notice::beside(raw_mode.as_ref()),
    };
    Ok(converse(conversation, signals).await)
}
