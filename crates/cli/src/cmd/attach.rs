//! `outpost attach`: this terminal, connected with detached work.

use std::{
    io::{self, IsTerminal as _, stdin},
    process::ExitCode,
};

use anyhow::Context;
use outpost_client::{
    Cause, DeliveryChoice, Place as _, Process, ProcessState, Remote, RemoteOptions, Standing,
};
use rustix::io::Errno;

use super::task::perform;
use crate::{
    args::Attach,
    console::{
        Conversation, Ending, Notice, Parting, RawMode, Signals, Typed, WayOut, converse,
        window_size,
    },
    detached::{self, Claim, Found, Site},
    exit,
    render::out::{note, note_below},
};

/// Attaches; the exit code is that of the process if it ends meanwhile.
pub(crate) fn run(args: &Attach) -> ExitCode {
    perform(async {
        let attached = attach(args).await;
        Ok(attached.unwrap_or_else(|error| exit::with_error(&error)))
    })
}

async fn attach(args: &Attach) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let site = Site::of(args.on.on.as_deref());
    let opening = async {
        let found = detached::open(&site, &args.id, Claim::Take).await?.found;
        let remote = join(&site, &found).await?;
        let process = remote.attach(&found.process_id, 0).await;
        let process = process.with_context(|| format!("cannot attach to {}", found.name()))?;
        anyhow::Ok((found, remote, process))
    };
    let (found, remote, process) = tokio::select! {
        opened = opening => opened?,
        signal = signals.ending() => return Ok(exit::of_signal(signal)),
    };
    let ending = talk(args, &found, &process, &remote, &mut signals).await?;
    let code = parted(&found, &process, &remote, ending).await;
    drop(process);
    remote.close().await?;
    Ok(code)
}

/// How it ended, for who was attached. Whatever happens here, the work goes on.
async fn parted(found: &Found, process: &Process, remote: &Remote, ending: Ending) -> ExitCode {
    let id = found.name();
    // The cursor stands wherever the work, or who typed, has left it.
    let say = match found.entry.tty || stdin().is_terminal() {
        true => note_below,
        false => note,
    };
    match ending {
        Ending::Detached => {
            say(&format!(
                "left {id}, which goes on; `outpost attach {id}` comes back to it"
            ));
            ExitCode::SUCCESS
        }
        // Nobody is left to see it, or to be told so.
        Ending::Unheard(error) if is_gone(&error) => ExitCode::SUCCESS,
        Ending::Unheard(error) => {
            say(&format!("cannot write what it says: {error}"));
            ExitCode::FAILURE
        }
        Ending::Failed(_) if is_taken_over(remote) => {
            say(&format!("another terminal has taken over {id}"));
            ExitCode::FAILURE
        }
        ending => exit::after(process, ending).await,
    }
}

/// Whether it was somebody else who ended it, by attaching too.
fn is_taken_over(remote: &Remote) -> bool {
    matches!(
        *remote.standing().borrow(),
        Standing::Failed {
            cause: Cause::TakenOver,
            ..
        }
    )
}

/// A reader that has seen enough, or a terminal that was closed.
fn is_gone(error: &io::Error) -> bool {
    let hung_up = error.raw_os_error() == Some(Errno::IO.raw_os_error());
    hung_up || error.kind() == io::ErrorKind::BrokenPipe
}

/// Takes the session of a process, from whoever has it.
async fn join(site: &Site, found: &Found) -> anyhow::Result<Remote> {
    if found.attached {
        note("taking it over from another terminal");
    }
    site.connect(RemoteOptions {
        client_name: "outpost attach".to_owned(),
        resume: Some(found.session_id.clone()),
        takeover: true,
        // It goes on when nobody watches, and doesn't wait for us to read.
        delivery: DeliveryChoice::Push,
        ..RemoteOptions::default()
    })
    .await
    .with_context(|| format!("cannot attach to {}", found.name()))
}

async fn talk(
    args: &Attach,
    found: &Found,
    process: &Process,
    remote: &Remote,
    signals: &mut Signals,
) -> anyhow::Result<Ending> {
    let tty = found.entry.tty;
    let running = matches!(
        found.entry.state,
        ProcessState::Starting | ProcessState::Running
    );
    let terminal = stdin().is_terminal();
    if terminal && running {
        note(&format!("{} leaves it running", args.detach_key));
    }
    let raw_mode = match (running, tty) {
        (true, true) => RawMode::set()?,
        (true, false) => RawMode::heed(args.detach_key)?,
        (false, _) => None,
    };
    if tty && running {
        redraw(process).await;
    }
    let conversation = Conversation {
        process,
        remote: Some(remote),
        tty,
        // What is left of a script's input isn't meant for what happens to run.
        typed: (terminal && running).then(|| Typed::read(Some(WayOut::Detach(args.detach_key)))),
        since: found.entry.next_seq,
        parting: Parting::Leaves,
        until: None,
        notice: Notice::beside(raw_mode.as_ref()),
    };
    Ok(converse(conversation, signals).await)
}

/// Gives the terminal of a process the size of ours. A program that draws draws
/// everything again when the size changes, so it does change.
async fn redraw(process: &Process) {
    if let Some((rows, cols)) = window_size() {
        // If it can't be changed, what is there is what is seen.
        let _ = process.resize(rows.max(2) - 1, cols).await;
        let _ = process.resize(rows, cols).await;
    }
}
