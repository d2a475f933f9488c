//! `outpost schema`: writes the protocol as JSON Schema.

use std::{
    fs,
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Context;
use outpost_server::schema;

use crate::args::Schema;

/// Writes the files. Other files in the directory are kept.
pub(crate) fn run(args: &Schema) -> ExitCode {
    match write(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "outpost: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn write(args: &Schema) -> anyhow::Result<()> {
    let directory = &args.out;
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create directory {}", directory.display()))?;
    for (name, document) in schema::documents() {
        let file = directory.join(name);
        fs::write(&file, format!("{document:#}\n"))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
