//! `outpost cp`: copies files and directories between this host and servers.

use std::{
    collections::BTreeSet,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use outpost_client::ConnectionState;

use crate::{
    args::{Location, OnOrLaunch},
    console::Signals,
    exit,
    render::{errors, out::note},
    transfer::{Address, CopyBar, CopyOptions, CopyProgress, LocationResolver, copy, summary},
};

/// Interval of the progress bar.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// Arguments of `outpost cp`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost cp report.pdf ws://10.0.0.7:7777:/srv/        into an existing directory
  outpost cp -r ws://10.0.0.7:7777:/var/log ./logs      recursively
  outpost cp --on ws://10.0.0.7:7777 a b :/srv          one server for several paths
  outpost cp build:/srv/x .                             a host of `outpost hosts`
  tar c . | outpost cp - unix:///run/outpost.sock:/tmp/all.tar

Each file is written atomically. Modes and times are not preserved, except those
of a replaced file. The exit code is 1 if a file was not copied, 255 if a server is
unreachable.")]
pub(crate) struct Cp {
    /// Copy directories recursively
    #[arg(short, long, visible_short_alias = 'R')]
    pub(crate) recursive: bool,

    /// Print only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) on: OnOrLaunch,

    /// Files to copy: PATH on this host, URL:PATH, NAME:PATH or, with --on, :PATH on a server, or - for stdin
    #[arg(value_name = "SOURCE", required = true, value_parser = Location::parser())]
    pub(crate) sources: Vec<Location>,

    /// Where to copy it: a path as above, or - for stdout
    #[arg(value_name = "DESTINATION", value_parser = Location::parser())]
    pub(crate) destination: Location,
}

/// Copies the sources.
pub(crate) async fn cp(args: &Cp) -> anyhow::Result<ExitCode> {
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
    let mut signals = Signals::listen()?;
    let bar = CopyBar::new(args.quiet || args.destination == Location::Stream);
    let mut locations = LocationResolver::new(&args.on, "outpost cp")?;
    let paths = args.sources.iter().chain([&args.destination]);
    let addresses = paths.map(|path| locations.address(path));
    let addresses = addresses.collect::<anyhow::Result<Vec<_>>>()?;
    locations.check_access(addresses.iter().flatten())?;
    let servers: BTreeSet<_> = addresses
        .iter()
        .flatten()
        .filter_map(Address::server_key)
        .collect();
    if servers.len() > 1 && !args.on.access.is_empty() {
        let message = "--token-file, --ca, --fingerprint and --client-cert are for one server, and the paths \
                       name more; use `outpost hosts add` to keep those of each";
        return Ok(exit::misuse(message));
    }
    let copying = copy_all(args, addresses, &mut locations, &bar);
    let outcome = signals
        .unless_ended(copying)
        .await
        .unwrap_or_else(|signal| {
            bar.clear();
            Ok(exit::of_signal(signal))
        });
    let _ = signals.unless_ended(locations.disconnect()).await;
    outcome
}

async fn copy_all(
    args: &Cp,
    addresses: Vec<Option<Address>>,
    locations: &mut LocationResolver,
    bar: &CopyBar,
) -> anyhow::Result<ExitCode> {
    let mut opened = Vec::new();
    for address in addresses {
        opened.push(match address {
            Some(address) => Some(locations.open(address).await?),
            None => None,
        });
    }
    let destination = opened.pop().flatten();
    let options = CopyOptions {
        recursive: args.recursive,
        sizes: bar.is_shown(),
        progress: Arc::new(CopyProgress::default()),
        on_error: &|error| bar.print(&errors::message(error)),
    };
    let started = Instant::now();
    let outcome = tokio::select! {
        outcome = copy(&opened, destination.as_ref(), &options) => outcome,
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
async fn draw(bar: &CopyBar, progress: &CopyProgress, locations: &LocationResolver) {
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
