//! `outpost cp`: files and directories, to a server, from one, or here.

use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use outpost_client::Standing;

use super::task::perform_on_files;
use crate::{
    args::{Cp, Location},
    console::Signals,
    exit,
    render::{
        out::note,
        progress::{Bar, Pace, summary},
        words,
    },
    transfer::{Course, Sites, Tally, copy},
};

/// How often the bar is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &Cp) -> ExitCode {
    perform_on_files(cp(args))
}

async fn cp(args: &Cp) -> anyhow::Result<ExitCode> {
    let inputs = args.sources.iter();
    let inputs = inputs.filter(|source| **source == Location::Stream).count();
    if inputs > 1 || (inputs == 1 && args.destination == Location::Stream) {
        return Ok(exit::misuse("standard input can be copied once, to a file"));
    }
    let on_named = |location: &Location| matches!(location, Location::OnNamed(_));
    let unused = !args.sources.iter().any(on_named) && !on_named(&args.destination);
    if args.on.on.is_some() && unused {
        let words = "--on names a server that no path is on; a path there is written :PATH";
        return Ok(exit::misuse(words));
    }
    // What is half written goes with us, whoever ends us.
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    let bar = Bar::wanted(args.quiet || args.destination == Location::Stream);
    let mut sites = Sites::new(args.on.on.as_deref(), "outpost cp");
    for location in args.sources.iter().chain([&args.destination]) {
        sites.check(location)?;
    }
    let outcome = tokio::select! {
        outcome = copied(args, &mut sites, bar) => outcome,
        signal = signals.ending() => {
            bar.clear();
            Ok(exit::of_signal(signal))
        }
    };
    let _ = signals.unless_ended(sites.leave()).await;
    outcome
}

async fn copied(args: &Cp, sites: &mut Sites, bar: Bar) -> anyhow::Result<ExitCode> {
    let mut sources = Vec::new();
    for source in &args.sources {
        sources.push(sites.find(source).await?);
    }
    let destination = sites.find(&args.destination).await?;
    let course = Course {
        recursive: args.recursive,
        sizes: bar.is_shown(),
        tally: Arc::new(Tally::default()),
        complain: &|error| bar.say(&words::of(error)),
    };
    let begun = Instant::now();
    let outcome = tokio::select! {
        outcome = copy(&sources, destination.as_ref(), &course) => outcome,
        () = draw(bar, &course.tally, sites, begun) => Ok(()),
    };
    bar.clear();
    outcome?;
    let totals = course.tally.totals();
    let some = totals.files > 0 || totals.files_found > 1;
    if !args.quiet && destination.is_some() && some {
        note(&summary(&totals, begun.elapsed()));
    }
    Ok(match totals.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Draws the bar, for as long as it is polled.
async fn draw(bar: Bar, tally: &Tally, sites: &Sites, begun: Instant) {
    if !bar.is_shown() {
        return std::future::pending().await;
    }
    let mut pace = Pace::default();
    let mut ticks = tokio::time::interval(DRAW_EVERY);
    loop {
        ticks.tick().await;
        let totals = tally.totals();
        pace.update(totals.bytes, begun.elapsed());
        let mut servers = sites.servers();
        let lost = servers.any(|server| *server.standing().borrow() == Standing::Recovering);
        bar.draw(&totals, &pace, lost);
    }
}
