//! `outpost schema`: the protocol as JSON Schema.

use std::{
    fs,
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Context;
use outpost_server::schema;

use crate::args::Schema;

/// Writes the files. Others in the folder stay as they are.
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
    let folder = &args.out;
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    for (name, document) in schema::documents() {
        let file = folder.join(name);
        fs::write(&file, format!("{document:#}\n"))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
