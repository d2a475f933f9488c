//! `outpost logs`: prints the output of a process.

use std::{
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context;
use outpost_client::Stream;

use crate::{
    args::{On, ended_by_limit},
    detached::{self, IfAttached},
    exit,
    render::{
        out::note,
        transcript::{Item, Transcript},
    },
    units::byte_size,
};

/// Page size.
const PAGE_BYTES: usize = 256 * 1024;
/// Long-poll timeout of one request.
const LONG_POLL: Duration = Duration::from_secs(30);

/// Arguments of `outpost logs`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost logs k3                         a unique prefix of the id
  outpost logs -f k3xabcde | grep error")]
pub(crate) struct Logs {
    /// Continue until the process has closed; Ctrl-C ends this command, not the process
    #[arg(short, long)]
    pub(crate) follow: bool,

    #[command(flatten)]
    pub(crate) on: On,

    /// The process id, or a prefix of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

/// Prints the output. The exit code after Ctrl-C is that of a shell.
pub(crate) async fn logs(args: &Logs) -> anyhow::Result<ExitCode> {
    if !args.follow {
        return print_transcript(args).await;
    }
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.context("cannot listen for signals")?;
            Ok(ExitCode::from(exit::INTERRUPTED))
        }
        outcome = print_transcript(args) => outcome,
    }
}

async fn print_transcript(args: &Logs) -> anyhow::Result<ExitCode> {
    let server = args.on.endpoint()?;
    let open = || detached::open(server.as_ref(), &args.id, IfAttached::Wait);
    let mut opened = open().await?;
    let mut transcript = Transcript::new(&opened.found.entry, args.follow);
    let mut ended_by = opened.found.entry.ended_by;
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
        ended_by = page.exit.and_then(|exit| exit.ended_by).or(ended_by);
        let items = transcript.add(page);
        // On a separate thread, because stdout may block.
        tokio::task::spawn_blocking(move || print(&items)).await??;
    }
    if let Some(limit) = ended_by_limit(ended_by) {
        note(&format!("a limit ended {}: {limit}", opened.found.name()));
    }
    Ok(ExitCode::SUCCESS)
}

fn print(items: &[Item]) -> io::Result<()> {
    for item in items {
        match item {
            Item::LostBefore(bytes) => {
                let bytes = byte_size(*bytes);
                note(&format!("the first {bytes} are no longer retained"));
            }
            Item::LostHere => {
                note("some output is missing here: it was evicted before it was read");
            }
            Item::Output(chunk) if chunk.stream == Stream::Stderr => {
                io::stderr().write_all(&chunk.bytes)?;
            }
            Item::Output(chunk) => io::stdout().write_all(&chunk.bytes)?,
        }
    }
    io::stdout().flush()
}
