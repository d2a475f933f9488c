//! `outpost cat`: prints files.

use std::process::ExitCode;

use outpost_client::FileReader;
use tokio::io::{AsyncWriteExt as _, Stdout, stdout};

use super::runtime::run_file_command;
use crate::{
    args::Cat,
    render::{errors, out::note},
    transfer::{Locations, file_error},
};

pub(crate) fn run(args: &Cat) -> ExitCode {
    run_file_command(cat(args))
}

async fn cat(args: &Cat) -> anyhow::Result<ExitCode> {
    let mut locations = Locations::new(args.on.on.as_deref(), "outpost cat");
    for path in &args.paths {
        locations.check_file(path)?;
    }
    let outcome = print_all(args, &mut locations).await;
    locations.disconnect().await;
    outcome
}

async fn print_all(args: &Cat, locations: &mut Locations) -> anyhow::Result<ExitCode> {
    let mut stdout = stdout();
    let mut code = ExitCode::SUCCESS;
    for path in &args.paths {
        let location = locations.resolve_file(path).await?;
        let shown = match location.files.open(&location.path).await {
            Ok(reader) => print(reader, &mut stdout).await?,
            Err(error) => Err(error),
        };
        if let Err(error) = shown {
            note(&errors::message(&file_error(error.into())?));
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Prints a file. An error of stdout is the outer one, an error of the file the inner one.
async fn print(
    mut reader: FileReader,
    stdout: &mut Stdout,
) -> anyhow::Result<Result<(), outpost_client::FileError>> {
    loop {
        match reader.next_bytes().await {
            Ok(bytes) if bytes.is_empty() => break,
            Ok(bytes) => stdout.write_all(&bytes).await?,
            Err(error) => {
                stdout.flush().await?;
                return Ok(Err(error));
            }
        }
    }
    stdout.flush().await?;
    Ok(Ok(()))
}
