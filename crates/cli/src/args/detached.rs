//! What can be said about detached work.

use clap_complete::Shell;

use super::On;

/// What to list, and how.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost ps
  outpost ps --all --json | jq '.[].command'")]
pub(crate) struct Ps {
    #[command(flatten)]
    pub(crate) on: On,

    /// Also what other clients of the server have started
    #[arg(short, long)]
    pub(crate) all: bool,

    /// As JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whose output to show.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost logs k3                         the only id that begins with k3
  outpost logs -f k3xabcde | grep error")]
pub(crate) struct Logs {
    /// Go on until the process has closed; Ctrl-C ends that, and not the process
    #[arg(short, long)]
    pub(crate) follow: bool,

    #[command(flatten)]
    pub(crate) on: On,

    /// Its id, or the beginning of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

/// For which shell.
#[derive(clap::Args, Debug)]
pub(crate) struct Completions {
    /// Your shell
    pub(crate) shell: Shell,
}
