//! `outpost sandbox` and `outpost doctor`.

use std::path::PathBuf;

/// What to run, and what it is confined to.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost sandbox -- make test                        writes here and in /tmp, no network
  outpost sandbox --profile :read-only -- cat notes   writes nothing
  outpost sandbox --write ../cache --net -- npm ci
  outpost sandbox -t --deny ~/.ssh --deny '**/*.pem' -- bash
  outpost sandbox --explain                           what would be allowed, and by what means

The exit code is the command's own, as with `outpost run`. If any of it can't be
enforced on this host the command isn't started, and the exit code is 1.")]
pub(crate) struct Sandbox {
    /// What it is confined to to begin with: :workspace, :read-only,
    /// :danger-full-access, or a profile of the configuration; the configured
    /// default if it isn't given
    #[arg(short, long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// It may also write here; may be given more than once
    #[arg(short, long, value_name = "DIR")]
    pub(crate) write: Vec<PathBuf>,

    /// It may also read here, where the profile doesn't read everything; may be
    /// given more than once
    #[arg(short, long, value_name = "DIR")]
    pub(crate) read: Vec<PathBuf>,

    /// This is out of its reach: a path, or a pattern with * ? or **, in which
    /// all else, brackets and braces too, stands for itself; may be given more
    /// than once
    #[arg(short, long, value_name = "DIR|PATTERN")]
    pub(crate) deny: Vec<String>,

    /// It may use the network
    #[arg(long)]
    pub(crate) net: bool,

    /// Give the command a terminal, of the size of this one
    #[arg(short, long)]
    pub(crate) tty: bool,

    /// The directory to run it in, and the project root
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,

    /// Run nothing; print what would be allowed, and by what means
    #[arg(long)]
    pub(crate) explain: bool,

    /// Explain as JSON, for programs
    #[arg(long, requires = "explain")]
    pub(crate) json: bool,

    /// The command and its arguments
    #[arg(
        required_unless_present = "explain",
        trailing_var_arg = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<String>,
}

/// How to tell what this host can enforce.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost doctor
  outpost doctor --json | jq '.checks[] | select(.state != \"works\")'

The exit code is 0 if processes can be confined here, and 1 if they can't.")]
pub(crate) struct Doctor {
    /// As JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}
