//! `outpost ls`: lists directories.

use std::{
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, UNIX_EPOCH},
};

use outpost_client::{FileError, Files, Metadata};
use serde::{Serialize, Serializer};
use tokio::task::JoinSet;

use crate::{
    args::{Location, OnOrLaunch},
    render::{
        out,
        screen::{Cell, Screen, Style},
    },
    transfer::{FileLocation, for_each_file},
};

/// Maximum number of concurrent metadata requests.
const CONCURRENT_LOOKUPS: usize = 32;

/// Arguments of `outpost ls`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  outpost ls ws://10.0.0.7:7777:/srv
  outpost ls -l --on unix:///run/outpost.sock /srv
  outpost ls --json ws://10.0.0.7:7777:/srv | jq '.[].size'")]
pub(crate) struct Ls {
    /// Print kind, size and modification time
    #[arg(short, long)]
    pub(crate) long: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) on: OnOrLaunch,

    /// Paths to list: URL:PATH on a server, or PATH on this host or the server of --on
    #[arg(value_name = "PATH", default_value = ".", value_parser = Location::parser())]
    pub(crate) paths: Vec<Location>,
}

/// A listed file. In JSON, with the field names of the wire.
#[derive(Clone, Debug, Serialize)]
struct Listed {
    #[serde(rename = "fileName")]
    name: String,
    #[serde(serialize_with = "lossy")]
    path: PathBuf,
    #[serde(skip)]
    is_directory: bool,
    /// Present if requested.
    #[serde(flatten)]
    metadata: Option<Metadata>,
}

fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Lists the paths.
pub(crate) async fn ls(args: &Ls) -> anyhow::Result<ExitCode> {
    let mut all = Vec::new();
    let code = for_each_file(&args.on, "outpost ls", &args.paths, async |location| {
        let entries = list(&location, args.long || args.json).await?;
        if args.json {
            all.extend(entries);
        } else {
            print(args, &location.path, &entries)?;
        }
        Ok(())
    })
    .await?;
    if args.json {
        out::json(&all)?;
    }
    Ok(code)
}

async fn list(location: &FileLocation, details: bool) -> Result<Vec<Listed>, FileError> {
    let metadata = location.files.metadata(&location.path).await?;
    if !metadata.is_directory {
        return Ok(vec![Listed {
            name: location.path.to_string_lossy().into_owned(),
            path: location.path.clone(),
            is_directory: false,
            metadata: Some(metadata),
        }]);
    }
    let entries = location.files.read_directory(&location.path).await?;
    let found = entries.into_iter().map(|entry| Listed {
        path: location.path.join(&entry.file_name),
        name: entry.file_name,
        is_directory: entry.is_directory,
        metadata: None,
    });
    let mut found: Vec<_> = found.collect();
    if details {
        read_metadata(&location.files, &mut found).await;
    }
    Ok(found)
}

/// Reads the metadata of each file, several at a time. A file that is gone by now keeps none.
async fn read_metadata(files: &Files, found: &mut [Listed]) {
    let mut lookups: JoinSet<(usize, Option<Metadata>)> = JoinSet::new();
    let mut next = 0;
    while next < found.len() || !lookups.is_empty() {
        while next < found.len() && lookups.len() < CONCURRENT_LOOKUPS {
            let (files, path, index) = (files.clone(), found[next].path.clone(), next);
            lookups.spawn(async move { (index, files.metadata(path).await.ok()) });
            next += 1;
        }
        if let Some(Ok((index, metadata))) = lookups.join_next().await {
            found[index].metadata = metadata;
        }
    }
}

fn print(args: &Ls, path: &Path, entries: &[Listed]) -> io::Result<()> {
    let terminal = io::stdout().is_terminal();
    if args.paths.len() > 1 {
        out::lines([format!("{}:", path.to_string_lossy())])?;
    }
    if args.long {
        out::raw_lines(long(entries, Screen::stdout()))
    } else if terminal {
        out::lines(entries.iter().map(shown))
    } else {
        // Programs need the names as they are.
        out::raw_lines(entries.iter().map(shown))
    }
}

/// A table with a heading; nothing without entries.
fn long(entries: &[Listed], screen: Screen) -> Vec<String> {
    if entries.is_empty() {
        return Vec::new();
    }
    let rows: Vec<_> = entries.iter().map(row).collect();
    screen.table(["KIND", "SIZE", "MODIFIED", "NAME"], &rows)
}

fn row(entry: &Listed) -> [Cell; 4] {
    let name = Cell::plain(shown(entry));
    let Some(metadata) = &entry.metadata else {
        let unknown = || Cell::styled("?", Style::Bad);
        return [unknown(), unknown(), unknown(), name];
    };
    let kind = match (metadata.is_directory, metadata.is_file) {
        (true, _) => "directory",
        (_, true) => "file",
        _ => "special",
    };
    let link = if metadata.is_symlink { "link to " } else { "" };
    [
        Cell::plain(format!("{link}{kind}")),
        Cell::plain(metadata.size.to_string()),
        Cell::plain(time(metadata.modified_at_ms)),
        name,
    ]
}

/// The name; a directory's ends with a slash.
fn shown(entry: &Listed) -> String {
    let slash = if entry.is_directory { "/" } else { "" };
    format!("{}{slash}", entry.name)
}

/// Formats in UTC, which doesn't depend on the host.
fn time(since_1970: i64) -> String {
    match u64::try_from(since_1970) {
        // humantime can't format times before 1970 or after 9999.
        Ok(millis) if millis < 253_402_300_800_000 => {
            let time = UNIX_EPOCH + Duration::from_millis(millis);
            humantime::format_rfc3339_seconds(time).to_string()
        }
        _ => format!("{since_1970} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, directory: bool, link: bool) -> Listed {
        Listed {
            name: name.to_owned(),
            path: PathBuf::new(),
            is_directory: directory,
            metadata: Some(Metadata {
                is_directory: directory,
                is_file: !directory,
                is_symlink: link,
                size: 1234,
                created_at_ms: 0,
                modified_at_ms: 1_794_794_580_000,
            }),
        }
    }

    #[test]
    fn table_shows_known_metadata() {
        let unknown = Listed {
            metadata: None,
            ..entry("gone", false, false)
        };
        let entries = [
            entry("a\nb", false, false),
            entry("d", true, false),
            entry("l", true, true),
            unknown,
        ];
        insta::assert_snapshot!(long(&entries, Screen::FILE).join("\n"), @r"
        KIND               SIZE  MODIFIED              NAME
        file               1234  2026-11-16T02:03:00Z  a\nb
        directory          1234  2026-11-16T02:03:00Z  d/
        link to directory  1234  2026-11-16T02:03:00Z  l/
        ?                  ?     ?                     gone
        ");
        assert_eq!(shown(&entries[0]), "a\nb");
        assert_eq!(shown(&entries[1]), "d/");
    }

    #[test]
    fn every_timestamp_can_be_formatted() {
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(-1), "-1 ms");
        assert_eq!(time(i64::MAX), format!("{} ms", i64::MAX));
    }
}
