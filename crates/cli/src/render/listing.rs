//! Output of `outpost ls`.

use std::time::{Duration, UNIX_EPOCH};

use outpost_client::Metadata;

use super::{
    command_line::visible,
    style::{Style, Styler},
    table::{Cell, lines},
};

/// A listed file. Metadata is present if requested.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) is_directory: bool,
    pub(crate) metadata: Option<Metadata>,
}

/// One name per line; directories end with a slash.
pub(crate) fn short(entries: &[Listed], terminal: bool) -> Vec<String> {
    let name = |entry: &Listed| shown(entry, terminal);
    entries.iter().map(name).collect()
}

/// A table with a heading.
pub(crate) fn long(
    entries: &[Listed],
    terminal: bool,
    width: Option<usize>,
    styler: Styler,
) -> Vec<String> {
    let rows: Vec<_> = entries.iter().map(|entry| row(entry, terminal)).collect();
    lines(["KIND", "SIZE", "MODIFIED", "NAME"], &rows, width, styler)
}

fn row(entry: &Listed, terminal: bool) -> [Cell; 4] {
    let name = Cell::plain(shown(entry, terminal));
    let Some(metadata) = &entry.metadata else {
        let unknown = || Cell::styled("?", Style::Bad);
        return [unknown(), unknown(), unknown(), name];
    };
    let kind = match (metadata.is_directory, metadata.is_file) {
        (true, _) => "directory",
        (_, true) => "file",
        _ => "special",
    };
    let kind = if metadata.is_symlink {
        format!("link to {kind}")
    } else {
        kind.to_owned()
    };
    [
        Cell::plain(kind),
        Cell::plain(metadata.size.to_string()),
        Cell::plain(time(metadata.modified_at_ms)),
        name,
    ]
}

/// Escapes control characters on a terminal.
fn shown(entry: &Listed, terminal: bool) -> String {
    let slash = if entry.is_directory { "/" } else { "" };
    if terminal {
        format!("{}{slash}", visible(&entry.name))
    } else {
        format!("{}{slash}", entry.name)
    }
}

/// Formats in UTC, which doesn't depend on the host.
fn time(since_1970: i64) -> String {
    let millis = Duration::from_millis(since_1970.unsigned_abs());
    let time = if since_1970 < 0 {
        UNIX_EPOCH.checked_sub(millis)
    } else {
        UNIX_EPOCH.checked_add(millis)
    };
    // humantime can't format times before 1970 or after 9999.
    let writable = (0..253_402_300_800_000).contains(&since_1970);
    match time.filter(|_| writable) {
        Some(time) => humantime::format_rfc3339_seconds(time).to_string(),
        None => format!("{since_1970} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, directory: bool, link: bool) -> Listed {
        Listed {
            name: name.to_owned(),
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
        let styler = Styler::on(&std::fs::File::open("/dev/null").unwrap());
        insta::assert_snapshot!(long(&entries, true, None, styler).join("\n"), @r"
        KIND               SIZE  MODIFIED              NAME
        file               1234  2026-11-16T02:03:00Z  a\nb
        directory          1234  2026-11-16T02:03:00Z  d/
        link to directory  1234  2026-11-16T02:03:00Z  l/
        ?                  ?     ?                     gone
        ");
        assert_eq!(short(&entries[..2], false), ["a\nb", "d/"]);
    }

    #[test]
    fn every_timestamp_can_be_formatted() {
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(-1), "-1 ms");
        assert_eq!(time(i64::MAX), format!("{} ms", i64::MAX));
    }
}
