//! `outpost schema`.

use std::path::PathBuf;

/// Where to write it.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost schema --out schema
  outpost schema --out /tmp/s && jq '.\"$defs\".params' /tmp/s/process-start.json")]
pub(crate) struct Schema {
    /// The folder for the files; it is made if it doesn't exist
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}
