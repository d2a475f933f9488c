//! `outpost cat`: what is in files.

use std::process::ExitCode;

use outpost_client::FileReader;
use tokio::io::{AsyncWriteExt as _, Stdout, stdout};

use super::task::perform_on_files;
use crate::{
    args::Cat,
    render::{out::note, words},
    transfer::{Sites, of_place},
};

pub(crate) fn run(args: &Cat) -> ExitCode {
    perform_on_files(cat(args))
}

async fn cat(args: &Cat) -> anyhow::Result<ExitCode> {
    let mut sites = Sites::new(args.on.on.as_deref(), "outpost cat");
    for path in &args.paths {
        sites.check_on(path)?;
    }
    let outcome = shown(args, &mut sites).await;
    sites.leave().await;
    outcome
}

async fn shown(args: &Cat, sites: &mut Sites) -> anyhow::Result<ExitCode> {
    let mut stdout = stdout();
    let mut code = ExitCode::SUCCESS;
    for path in &args.paths {
        let site = sites.find_on(path).await?;
        let shown = match site.files.open(&site.path).await {
            Ok(reader) => show(reader, &mut stdout).await?,
            Err(error) => Err(error),
        };
        if let Err(error) = shown {
            note(&words::of(&of_place(error.into())?));
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Fails if nobody reads it; what is wrong with the file is told apart.
async fn show(
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
