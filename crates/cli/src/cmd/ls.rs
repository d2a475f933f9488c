//! `outpost ls`: what is in directories.

use std::{
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use outpost_client::{FileError, Files, Metadata};
use serde::Serialize;
use tokio::task::JoinSet;

use super::task::perform_on_files;
use crate::{
    args::Ls,
    render::{
        listing::{self, Listed},
        out,
        paint::Paint,
        words,
    },
    transfer::{Site, Sites, of_place},
};

/// How many files are looked at together.
const LOOKS_AT_ONCE: usize = 32;

pub(crate) fn run(args: &Ls) -> ExitCode {
    perform_on_files(ls(args))
}

async fn ls(args: &Ls) -> anyhow::Result<ExitCode> {
    let mut sites = Sites::new(args.on.on.as_deref(), "outpost ls");
    for path in &args.paths {
        sites.check_on(path)?;
    }
    let outcome = listed(args, &mut sites).await;
    sites.leave().await;
    outcome
}

async fn listed(args: &Ls, sites: &mut Sites) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    let mut all = Vec::new();
    let several = args.paths.len() > 1;
    for path in &args.paths {
        let site = sites.find_on(path).await?;
        match list(&site, args.long || args.json).await {
            Ok(entries) if args.json => all.extend(entries),
            Ok(entries) => show(args, several.then_some(&site.path), &entries)?,
            Err(error) => {
                out::note(&words::of(&of_place(error.into())?));
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

/// Something that was found, and where.
struct Found {
    path: PathBuf,
    listed: Listed,
}

async fn list(site: &Site, details: bool) -> Result<Vec<Found>, FileError> {
    let metadata = site.files.metadata(&site.path).await?;
    if !metadata.is_directory {
        return Ok(vec![Found {
            path: site.path.clone(),
            listed: Listed {
                name: site.path.to_string_lossy().into_owned(),
                is_directory: false,
                metadata: Some(metadata),
            },
        }]);
    }
    let entries = site.files.read_directory(&site.path).await?;
    let mut found: Vec<_> = entries
        .into_iter()
        .map(|entry| Found {
            path: site.path.join(&entry.file_name),
            listed: Listed {
                name: entry.file_name,
                is_directory: entry.is_directory,
                metadata: None,
            },
        })
        .collect();
    if details {
        look_at(&site.files, &mut found).await;
    }
    Ok(found)
}

/// Finds out more about each, some at a time. What is gone by now stays unknown.
async fn look_at(files: &Files, found: &mut [Found]) {
    let mut looks: JoinSet<(usize, Option<Metadata>)> = JoinSet::new();
    let mut next = 0;
    while next < found.len() || !looks.is_empty() {
        while next < found.len() && looks.len() < LOOKS_AT_ONCE {
            let (files, path, index) = (files.clone(), found[next].path.clone(), next);
            looks.spawn(async move { (index, files.metadata(path).await.ok()) });
            next += 1;
        }
        if let Some(Ok((index, metadata))) = looks.join_next().await {
            found[index].listed.metadata = metadata;
        }
    }
}

fn show(args: &Ls, heading: Option<&PathBuf>, found: &[Found]) -> io::Result<()> {
    let terminal = io::stdout().is_terminal();
    let entries: Vec<_> = found.iter().map(|found| found.listed.clone()).collect();
    if let Some(heading) = heading {
        out::lines([format!("{}:", shown(heading))])?;
    }
    out::lines(match args.long {
        true if entries.is_empty() => Vec::new(),
        true => listing::long(&entries, terminal, out::width(), Paint::on(&io::stdout())),
        false => listing::short(&entries, terminal),
    })
}

fn shown(path: &Path) -> String {
    crate::render::command_line::visible(&path.to_string_lossy())
}

/// A file for programs, in the words of the wire.
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
