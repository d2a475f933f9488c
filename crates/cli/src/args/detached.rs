//! Arguments of commands about detached work.

use clap_complete::Shell;

use super::On;

/// Arguments of `outpost ps`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost ps
  outpost ps --all --json | jq '.[].command'")]
pub(crate) struct Ps {
    #[command(flatten)]
    pub(crate) on: On,

    /// Also list processes of other clients
    #[arg(short, long)]
    pub(crate) all: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

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

/// Arguments of `outpost completions`.
#[derive(clap::Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}
