//! `outpost cp`: copies files and directories between this host and servers.

use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use outpost_client::ConnectionState;

use super::runtime::run_file_command;
use crate::{
    args::{Cp, Location},
    console::Signals,
    exit,
    render::{
        errors,
        out::note,
        progress::{CopyBar, summary},
    },
    transfer::{CopyOptions, CopyProgress, Locations, copy},
};

/// Interval of the progress bar.
const DRAW_EVERY: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &Cp) -> ExitCode {
    run_file_command(cp(args))
}

async fn cp(args: &Cp) -> anyhow::Result<ExitCode> {
    let inputs = args.sources.iter();
    let inputs = inputs.filter(|source| **source == Location::Stream).count();
    if inputs > 1 || (inputs == 1 && args.destination == Location::Stream) {
        return Ok(exit::misuse(
            "cannot copy stdin: it can be copied once, to a file",
        ));
    }
    let uses_on = |location: &Location| matches!(location, Location::OnDefault(_));
    let unused = !args.sources.iter().any(uses_on) && !uses_on(&args.destination);
    if args.on.on.is_some() && unused {
        let message = "--on is given, but no path uses it; write a path on that server as :PATH";
        return Ok(exit::misuse(message));
    }
    // A signal must remove incomplete files before this program exits.
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let bar = CopyBar::new(args.quiet || args.destination == Location::Stream);
    let mut locations = Locations::new(args.on.on.as_deref(), "outpost cp");
    for location in args.sources.iter().chain([&args.destination]) {
        locations.check(location)?;
    }
    let outcome = tokio::select! {
        outcome = copy_all(args, &mut locations, &bar) => outcome,
        signal = signals.ending() => {
            bar.clear();
            Ok(exit::of_signal(signal))
        }
    };
    let _ = signals.unless_ended(locations.disconnect()).await;
    outcome
}

async fn copy_all(args: &Cp, locations: &mut Locations, bar: &CopyBar) -> anyhow::Result<ExitCode> {
    let mut sources = Vec::new();
    for source in &args.sources {
        sources.push(locations.resolve(source).await?);
    }
    let destination = locations.resolve(&args.destination).await?;
    let options = CopyOptions {
        recursive: args.recursive,
        sizes: bar.is_shown(),
        progress: Arc::new(CopyProgress::default()),
        on_error: &|error| bar.print(&errors::message(error)),
    };
    let started = Instant::now();
    let outcome = tokio::select! {
        outcome = copy(&sources, destination.as_ref(), &options) => outcome,
        () = draw(bar, &options.progress, locations) => Ok(()),
    };
    bar.clear();
    outcome?;
    let totals = options.progress.totals();
    let some = totals.files > 0 || totals.files_found > 1;
    if !args.quiet && destination.is_some() && some {
        note(&summary(&totals, started.elapsed()));
    }
    Ok(if totals.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Draws the progress bar, for as long as it is polled.
async fn draw(bar: &CopyBar, progress: &CopyProgress, locations: &Locations) {
    if !bar.is_shown() {
        return std::future::pending().await;
    }
    let mut ticks = tokio::time::interval(DRAW_EVERY);
    loop {
        ticks.tick().await;
        let totals = progress.totals();
        let mut servers = locations.servers();
        let lost = servers
            .any(|server| *server.connection_state().borrow() == ConnectionState::Recovering);
        bar.draw(&totals, lost);
    }
}
