//! `outpost attach`: this terminal, connected with detached work.

use std::{
    io::{IsTerminal as _, stdin},
    process::ExitCode,
};

use anyhow::Context;
use outpost_client::{DeliveryChoice, Place as _, Process, ProcessState, Remote, RemoteOptions};

use super::task::perform;
use crate::{
    args::Attach,
    console::{Conversation, Ending, Notice, RawMode, Signals, Typed, converse, window_size},
    detached::{self, Found, Site},
    exit,
    render::out::note,
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
    let found = detached::open(&site, &args.id).await?.found;
    let remote = join(&site, &found).await?;
    let process = remote.attach(&found.process_id, 0).await;
    let process = process.with_context(|| format!("cannot attach to {}", found.process_id))?;
    let ending = talk(args, &found, &process, &remote, &mut signals).await?;
    let left = matches!(ending, Ending::Detached);
    let code = match ending {
        // Who stops reading here doesn't stop the work.
        Ending::Unheard(error) => {
            note(&format!("cannot write what it says: {error}"));
            ExitCode::FAILURE
        }
        ending => exit::after(&process, ending).await,
    };
    if left {
        let id = &found.process_id;
        note(&format!(
            "left {id}, which goes on; `outpost attach {id}` comes back to it"
        ));
    }
    drop(process);
    remote.close().await?;
    Ok(code)
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
    .with_context(|| format!("cannot attach to {}", found.process_id))
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
    let raw_mode = match tty && running {
        true => RawMode::set()?,
        false => None,
    };
    if tty && running {
        redraw(process).await;
    }
    let conversation = Conversation {
        process,
        remote: Some(remote),
        tty,
        // What is left of a script's input isn't meant for what happens to run.
        typed: (terminal && running).then(|| Typed::read(Some(args.detach_key))),
        since: found.entry.next_seq,
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
