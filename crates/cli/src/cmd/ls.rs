//! `outpost ls`: lists directories.

use std::{
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use outpost_client::{FileError, Files, Metadata};
use serde::Serialize;
use tokio::task::JoinSet;

use super::runtime::run_file_command;
use crate::{
    args::Ls,
    render::{
        errors,
        listing::{self, Listed},
        out,
        style::Styler,
    },
    transfer::{FileLocation, Locations, file_error},
};

/// Maximum number of concurrent metadata requests.
const CONCURRENT_LOOKUPS: usize = 32;

pub(crate) fn run(args: &Ls) -> ExitCode {
    run_file_command(ls(args))
}

async fn ls(args: &Ls) -> anyhow::Result<ExitCode> {
    let mut locations = Locations::new(args.on.on.as_deref(), "outpost ls");
    for path in &args.paths {
        locations.check_file(path)?;
    }
    let outcome = print_all(args, &mut locations).await;
    locations.disconnect().await;
    outcome
}

async fn print_all(args: &Ls, locations: &mut Locations) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    let mut all = Vec::new();
    let several = args.paths.len() > 1;
    for path in &args.paths {
        let location = locations.resolve_file(path).await?;
        match list(&location, args.long || args.json).await {
            Ok(entries) if args.json => all.extend(entries),
            Ok(entries) => print(args, several.then_some(&location.path), &entries)?,
            Err(error) => {
                out::note(&errors::message(&file_error(error.into())?));
                code = ExitCode::FAILURE;
            }
        }
    }
    if args.json {
        let all: Vec<_> = all.iter().map(Entry::of).collect();
        out::lines([serde_json::to_string_pretty(&all)?])?;
    }
    Ok(code)
}

/// A file, and its path.
struct Found {
    path: PathBuf,
    listed: Listed,
}

async fn list(location: &FileLocation, details: bool) -> Result<Vec<Found>, FileError> {
    let metadata = location.files.metadata(&location.path).await?;
    if !metadata.is_directory {
        return Ok(vec![Found {
            path: location.path.clone(),
            listed: Listed {
                name: location.path.to_string_lossy().into_owned(),
                is_directory: false,
                metadata: Some(metadata),
            },
        }]);
    }
    let entries = location.files.read_directory(&location.path).await?;
    let mut found: Vec<_> = entries
        .into_iter()
        .map(|entry| Found {
            path: location.path.join(&entry.file_name),
            listed: Listed {
                name: entry.file_name,
                is_directory: entry.is_directory,
                metadata: None,
            },
        })
        .collect();
    if details {
        read_metadata(&location.files, &mut found).await;
    }
    Ok(found)
}

/// Reads the metadata of each file, several at a time. A file that is gone by now keeps none.
async fn read_metadata(files: &Files, found: &mut [Found]) {
    let mut lookups: JoinSet<(usize, Option<Metadata>)> = JoinSet::new();
    let mut next = 0;
    while next < found.len() || !lookups.is_empty() {
        while next < found.len() && lookups.len() < CONCURRENT_LOOKUPS {
            let (files, path, index) = (files.clone(), found[next].path.clone(), next);
            lookups.spawn(async move { (index, files.metadata(path).await.ok()) });
            next += 1;
        }
        if let Some(Ok((index, metadata))) = lookups.join_next().await {
            found[index].listed.metadata = metadata;
        }
    }
}

fn print(args: &Ls, heading: Option<&PathBuf>, found: &[Found]) -> io::Result<()> {
    let terminal = io::stdout().is_terminal();
    let entries: Vec<_> = found.iter().map(|found| found.listed.clone()).collect();
    if let Some(heading) = heading {
        out::lines([format!("{}:", escaped(heading))])?;
    }
    out::lines(if !args.long {
        listing::short(&entries, terminal)
    } else if entries.is_empty() {
        Vec::new()
    } else {
        listing::long(&entries, terminal, out::width(), Styler::on(&io::stdout()))
    })
}

fn escaped(path: &Path) -> String {
    crate::render::command_line::visible(&path.to_string_lossy())
}

/// A file as JSON, with the field names of the wire.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    file_name: &'a str,
    path: String,
    #[serde(flatten)]
    metadata: Option<Metadata>,
}

impl<'a> Entry<'a> {
    fn of(found: &'a Found) -> Self {
        Entry {
            file_name: &found.listed.name,
            path: found.path.to_string_lossy().into_owned(),
            metadata: found.listed.metadata,
        }
    }
}
