//! `outpost logs`: prints the output of a process.

use std::{
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context;
use outpost_client::{Chunk, Stream};

use super::runtime::run_command;
use crate::{
    args::Logs,
    detached::{self, Claim, ServerTarget},
    render::{
        byte_size::byte_size,
        out::note,
        transcript::{Item, Transcript},
    },
};

/// Exit code after Ctrl-C, as in a shell.
const INTERRUPTED: u8 = 130;
/// Page size.
const PAGE_BYTES: usize = 256 * 1024;
/// Long-poll timeout of one request.
const LONG_POLL: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &Logs) -> ExitCode {
    run_command(logs(args))
}

async fn logs(args: &Logs) -> anyhow::Result<ExitCode> {
    if !args.follow {
        return print_transcript(args).await;
    }
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.context("cannot listen for signals")?;
            Ok(ExitCode::from(INTERRUPTED))
        }
        outcome = print_transcript(args) => outcome,
    }
}

async fn print_transcript(args: &Logs) -> anyhow::Result<ExitCode> {
    let server = ServerTarget::from_on(args.on.on.as_deref());
    let open = || detached::open(&server, &args.id, Claim::Wait);
    let mut opened = open().await?;
    let mut transcript = Transcript::new(&opened.found.entry, args.follow);
    let wait = if args.follow {
        LONG_POLL
    } else {
        Duration::ZERO
    };
    while let Some(after) = transcript.next() {
        let page = opened.process().read(after, Some(PAGE_BYTES), wait).await;
        let page = match page {
            // Another command took over the session for a moment; the output is still retained.
            Err(_) if opened.is_taken_over().await => {
                opened = open().await?;
                continue;
            }
            page => page.context("cannot read the output of the process")?,
        };
        let items = transcript.add(page);
        // On a separate thread, because stdout may block.
        tokio::task::spawn_blocking(move || print_all(&items)).await??;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_all(items: &[Item]) -> io::Result<()> {
    items.iter().try_for_each(print)?;
    io::stdout().flush()
}

fn print(item: &Item) -> io::Result<()> {
    match item {
        Item::LostBefore(bytes) => {
            note(&format!(
                "the first {} are no longer retained",
                byte_size(*bytes)
            ));
            Ok(())
        }
        Item::LostHere => {
            note("some output is missing here: it was evicted before it was read");
            Ok(())
        }
        Item::Output(chunk) => write(chunk),
    }
}

fn write(chunk: &Chunk) -> io::Result<()> {
    match chunk.stream {
        Stream::Stdout | Stream::Pty => io::stdout().write_all(&chunk.bytes),
        Stream::Stderr => io::stderr().write_all(&chunk.bytes),
    }
}
