//! Arguments of commands about files.

use super::{Location, OnAny};

/// Arguments of `outpost cp`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost cp report.pdf ws://10.0.0.7:7777:/srv/        into an existing directory
  outpost cp -r ws://10.0.0.7:7777:/var/log ./logs      recursively
  outpost cp --on ws://10.0.0.7:7777 a b :/srv          one server for several paths
  outpost cp 'stdio:ssh build outpost serve --listen stdio://:/srv/x' .
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
    pub(crate) on: OnAny,

    /// Files to copy: PATH on this host, URL:PATH or, with --on, :PATH on a server, or - for stdin
    #[arg(value_name = "SOURCE", required = true, value_parser = Location::parser())]
    pub(crate) sources: Vec<Location>,

    /// Where to copy it: a path as above, or - for stdout
    #[arg(value_name = "DESTINATION", value_parser = Location::parser())]
    pub(crate) destination: Location,
}

/// Arguments of `outpost ls`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost ls ws://10.0.0.7:7777:/srv
  outpost ls -l --on unix:///run/outpost.sock /srv
  outpost ls --json ws://10.0.0.7:7777:/srv | jq '.[].size'")]
pub(crate) struct Ls {
    /// Print kind, size and modification time
    #[arg(short, long)]
    pub(crate) long: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) on: OnAny,

    /// Paths to list: URL:PATH on a server, or PATH on this host or the server of --on
    #[arg(value_name = "PATH", default_value = ".", value_parser = Location::parser())]
    pub(crate) paths: Vec<Location>,
}

/// Arguments of `outpost cat`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost cat ws://10.0.0.7:7777:/etc/os-release
  outpost cat --on unix:///run/outpost.sock /var/log/a /var/log/b | grep error")]
pub(crate) struct Cat {
    #[command(flatten)]
    pub(crate) on: OnAny,

    /// Files to print: URL:PATH on a server, or PATH on this host or the server of --on
    #[arg(value_name = "PATH", required = true, value_parser = Location::parser())]
    pub(crate) paths: Vec<Location>,
}
