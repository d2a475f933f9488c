//! What can be said about files.

use super::{Location, OnAny};

/// What to copy, and where to.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost cp report.pdf ws://10.0.0.7:7777:/srv/        into a directory that exists
  outpost cp -r ws://10.0.0.7:7777:/var/log ./logs      a tree
  outpost cp --on ws://10.0.0.7:7777 a b :/srv          the server named once
  outpost cp 'stdio:ssh build outpost serve --listen stdio://:/srv/x' .
  tar c . | outpost cp - unix:///run/outpost.sock:/tmp/all.tar

Each file appears at once, complete, or not at all. Modes and times are not
kept, except those of a file that is replaced. The exit code is 1 if anything
was not copied, 255 if a server is out of reach.")]
pub(crate) struct Cp {
    /// Copy directories, with everything below them
    #[arg(short, long, visible_short_alias = 'R')]
    pub(crate) recursive: bool,

    /// Say nothing but what goes wrong
    #[arg(short, long)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) on: OnAny,

    /// What to copy: PATH here, URL:PATH or, with --on, :PATH on a server, or -
    /// for standard input
    #[arg(value_name = "SOURCE", required = true, value_parser = Location::parser())]
    pub(crate) sources: Vec<Location>,

    /// Where to copy it: the same, or - for standard output
    #[arg(value_name = "DESTINATION", value_parser = Location::parser())]
    pub(crate) destination: Location,
}

/// What to list, and how.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost ls ws://10.0.0.7:7777:/srv
  outpost ls -l --on unix:///run/outpost.sock /srv
  outpost ls --json ws://10.0.0.7:7777:/srv | jq '.[].size'")]
pub(crate) struct Ls {
    /// With kind, size and time of the last change
    #[arg(short, long)]
    pub(crate) long: bool,

    /// As JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) on: OnAny,

    /// What to list: URL:PATH on a server, or PATH, here or where --on says
    #[arg(value_name = "PATH", default_value = ".", value_parser = Location::parser())]
    pub(crate) paths: Vec<Location>,
}

/// What to show.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost cat ws://10.0.0.7:7777:/etc/os-release
  outpost cat --on unix:///run/outpost.sock /var/log/a /var/log/b | grep error")]
pub(crate) struct Cat {
    #[command(flatten)]
    pub(crate) on: OnAny,

    /// What to show: URL:PATH on a server, or PATH, here or where --on says
    #[arg(value_name = "PATH", required = true, value_parser = Location::parser())]
    pub(crate) paths: Vec<Location>,
}
