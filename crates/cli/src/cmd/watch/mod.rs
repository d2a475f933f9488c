//! `outpost watch`: prints changes of files, or runs a command when they change.
//!
//! - [`watched_executor`]: the watches on this host or on one server, which are opened again with a
//!   new session when a server was restarted
//! - [`batches`]: the changes of all watches
//! - [`batch`]: changes that are reported together, and how they are printed
//! - [`command`]: runs the command

mod batch;
mod batches;
mod command;
mod watched_executor;

use std::{io, process::ExitCode};

use batch::Format;
use batches::Batches;

use crate::{
    args::{Location, OnOrLaunch, text},
    console::Signals,
    exit,
    target::Leftovers,
    transfer::LocationResolver,
};

/// Arguments of `outpost watch`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost watch src                                 prints each changed path
  outpost watch src Cargo.toml -- cargo test        runs a command after each change
  outpost watch --on build /srv/app -- make         watches and runs on a server
  outpost watch build:/srv/app/log -- ./fetch.sh    watches there, runs here
  outpost watch --json /etc | jq -c .paths
  outpost watch -0 src | xargs -0 -n 1 ./upload     for names with spaces and newlines
  outpost watch --once /run/ready                   waits for a change

The first Ctrl-C goes to a running command, and the watch ends with it; the second one kills it.
The exit code is 128+N after signal N, such as 130 after Ctrl-C; 1 if a path can't be watched; 127
or 126 if the command is not found or can't be executed; 255 if a server can't be reached. With
--once it is 0, or the command's own.")]
pub(crate) struct Watch {
    /// Watch only the entries of a directory, not everything below it
    #[arg(long)]
    pub(crate) no_recursive: bool,

    /// The default: watch everything below a directory
    #[arg(short, long, hide = true, overrides_with = "no_recursive")]
    pub(crate) recursive: bool,

    /// End after the first changes, or after the command that they started
    #[arg(long)]
    pub(crate) once: bool,

    /// Print a JSON object for each batch of changes
    #[arg(long, conflicts_with = "command")]
    pub(crate) json: bool,

    /// Print each path as it is, with a null character behind it, for `xargs -0`
    #[arg(short = '0', long, conflicts_with_all = ["command", "json"])]
    pub(crate) null: bool,

    #[command(flatten)]
    pub(crate) on: OnOrLaunch,

    /// Files and directories, which need not exist: URL:PATH on a server, or PATH on this host or
    /// the server of --on
    #[arg(value_name = "PATH", required = true, value_parser = Location::parser())]
    pub(crate) paths: Vec<Location>,

    /// A command to run after each batch of changes, here or on the server of --on; WATCH_PATHS tells it
    /// what has changed
    #[arg(last = true, value_name = "COMMAND", value_parser = text())]
    pub(crate) command: Vec<String>,
}

impl Watch {
    fn format(&self) -> Format {
        match (self.json, self.null) {
            (true, _) => Format::Json,
            (_, true) => Format::Null,
            _ => Format::Lines,
        }
    }
}

/// Watches until a signal arrives, or something fails.
pub(crate) async fn watch(args: &Watch) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let locations = LocationResolver::new(&args.on, "outpost watch")?;
    let server = locations.default_server().cloned();
    let runs = !args.command.is_empty();
    let opening = Batches::open(args, &locations, server.as_ref().filter(|_| runs));
    let mut batches = match signals.unless_ended(opening).await {
        Ok(opened) => opened?,
        Err(signal) => return Ok(exit::of_signal(signal)),
    };
    let (outcome, leftovers) = match runs {
        false => {
            let outcome = print_changes(args, &mut batches, &mut signals).await;
            (outcome, Leftovers::None)
        }
        true => {
            let running =
                command::run_on_changes(args, server.as_ref(), &mut batches, &mut signals);
            (running.await, Leftovers::Processes)
        }
    };
    let _ = signals.unless_ended(batches.close(leftovers)).await;
    outcome
}

/// Prints each batch of changes.
async fn print_changes(
    args: &Watch,
    batches: &mut Batches,
    signals: &mut Signals,
) -> anyhow::Result<ExitCode> {
    loop {
        let batch = match signals.unless_ended(batches.next()).await {
            Ok(batch) => batch?,
            Err(signal) => return Ok(exit::of_signal(signal)),
        };
        let has_changes = batch.has_changes();
        let format = args.format();
        // On a separate thread, because stdout may block.
        let printed = tokio::task::spawn_blocking(move || batch.print(format)).await?;
        match printed {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(ExitCode::from(exit::BROKEN_PIPE));
            }
            printed => printed?,
        }
        if args.once && has_changes {
            return Ok(ExitCode::SUCCESS);
        }
    }
}
