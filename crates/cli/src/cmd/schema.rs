//! `outpost schema`: writes the protocol as JSON Schema.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::Context;
use outpost_server::schema;

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

/// Writes the files. Other files in the directory are kept.
pub(crate) fn schema(args: &Schema) -> anyhow::Result<ExitCode> {
    let directory = &args.out;
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create directory {}", directory.display()))?;
    for (name, document) in schema::documents() {
        let file = directory.join(name);
        fs::write(&file, format!("{document:#}\n"))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
