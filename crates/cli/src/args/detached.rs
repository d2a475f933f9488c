//! What can be said about detached work.

use clap_complete::Shell;
use outpost_client::SignalName;

use super::{On, signal::signal};

/// What to list, and how.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost ps
  outpost ps --json | jq -r '.[].processId'
  outpost ps --all --on unix:///run/outpost.sock")]
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
  outpost logs k3xabcde
  outpost logs -f k3                      the only id that begins with k3")]
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

/// What to end, and how.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost kill k3xabcde t6
  outpost kill -s INT k3xabcde            what Ctrl-C sends")]
pub(crate) struct Kill {
    /// Only send this signal: a name such as INT or SIGUSR1, or a number
    #[arg(short, long, value_name = "SIGNAL", value_parser = signal)]
    pub(crate) signal: Option<SignalName>,

    #[command(flatten)]
    pub(crate) on: On,

    /// Their ids, or the beginnings of them
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

/// For which shell.
#[derive(clap::Args, Debug)]
pub(crate) struct Completions {
    /// Your shell
    pub(crate) shell: Shell,
}
