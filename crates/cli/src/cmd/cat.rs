//! `outpost cat`: prints files.

use std::process::ExitCode;

use crate::{
    args::{Location, OnOrLaunch},
    transfer::{CopyProgress, file_to_stdout, for_each_file},
};

/// Arguments of `outpost cat`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost cat ws://10.0.0.7:7777:/etc/os-release
  outpost cat --on unix:///run/outpost.sock /var/log/a /var/log/b | grep error")]
pub(crate) struct Cat {
    #[command(flatten)]
    pub(crate) on: OnOrLaunch,

    /// Files to print: URL:PATH on a server, or PATH on this host or the server of --on
    #[arg(value_name = "PATH", required = true, value_parser = Location::parser())]
    pub(crate) paths: Vec<Location>,
}

/// Prints the files one after the other.
pub(crate) async fn cat(args: &Cat) -> anyhow::Result<ExitCode> {
    let mut stdout = tokio::io::stdout();
    let progress = CopyProgress::default();
    for_each_file(&args.on, "outpost cat", &args.paths, async |location| {
        file_to_stdout(&location, &mut stdout, &progress).await
    })
    .await
}
