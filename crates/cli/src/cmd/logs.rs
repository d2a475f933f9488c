//! `outpost logs`: what a process has written.

use std::{
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context;
use outpost_client::{Chunk, StreamName};

use super::task::perform;
use crate::{
    args::Logs,
    detached::{self, Claim, Site},
    render::{
        amount::amount,
        out::note,
        transcript::{Piece, Transcript},
    },
};

/// The exit code of what was interrupted, as shells have it.
const INTERRUPTED: u8 = 130;
/// How much is asked for at once.
const PAGE_BYTES: usize = 256 * 1024;
/// How long one question may wait for news; then it is asked again.
const WAIT: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &Logs) -> ExitCode {
    perform(logs(args))
}

async fn logs(args: &Logs) -> anyhow::Result<ExitCode> {
    if !args.follow {
        return transcribe(args).await;
    }
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.context("cannot listen for signals")?;
            Ok(ExitCode::from(INTERRUPTED))
        }
        outcome = transcribe(args) => outcome,
    }
}

async fn transcribe(args: &Logs) -> anyhow::Result<ExitCode> {
    let site = Site::of(args.on.on.as_deref());
    let open = || detached::open(&site, &args.id, Claim::Wait);
    let mut opened = open().await?;
    let mut transcript = Transcript::new(&opened.found.entry, args.follow);
    let wait = if args.follow { WAIT } else { Duration::ZERO };
    while let Some(after) = transcript.next() {
        let page = opened.process().read(after, Some(PAGE_BYTES), wait).await;
        let page = match page {
            // It was somebody's for a moment, and what was written meanwhile is still there.
            Err(_) if opened.is_taken_over().await => {
                opened = open().await?;
                continue;
            }
            page => page.context("cannot read what the process has written")?,
        };
        let pieces = transcript.take(page);
        // Beside everything else: who reads may have stopped.
        tokio::task::spawn_blocking(move || show_all(&pieces)).await??;
    }
    Ok(ExitCode::SUCCESS)
}

fn show_all(pieces: &[Piece]) -> io::Result<()> {
    pieces.iter().try_for_each(show)?;
    io::stdout().flush()
}

fn show(piece: &Piece) -> io::Result<()> {
    match piece {
        Piece::LostBefore(bytes) => {
            note(&format!(
                "the first {} are no longer retained",
                amount(*bytes)
            ));
            Ok(())
        }
        Piece::LostHere => {
            note("some output is missing here: it was gone before it was read");
            Ok(())
        }
        Piece::Output(chunk) => write(chunk),
    }
}

fn write(chunk: &Chunk) -> io::Result<()> {
    match chunk.stream {
        StreamName::Stdout | StreamName::Pty => io::stdout().write_all(&chunk.bytes),
        StreamName::Stderr => io::stderr().write_all(&chunk.bytes),
    }
}
