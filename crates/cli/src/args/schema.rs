//! `outpost schema`.

use std::path::PathBuf;

/// Arguments of `outpost schema`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost schema --out schema
  outpost schema --out /tmp/s && jq '.\"$defs\".params' /tmp/s/process-start.json")]
pub(crate) struct Schema {
    /// The directory for the files; created if it doesn't exist
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}
