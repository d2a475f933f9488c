//! What is in a directory.

use std::time::{Duration, UNIX_EPOCH};

use outpost_client::Metadata;

use super::{
    command_line::visible,
    paint::{Paint, Tone},
    table::{Cell, lines},
};

/// Something that is listed. What is known of it is left out where nobody asked.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) is_directory: bool,
    pub(crate) metadata: Option<Metadata>,
}

/// One name a line; directories have a slash behind them.
pub(crate) fn short(entries: &[Listed], terminal: bool) -> Vec<String> {
    let name = |entry: &Listed| shown(entry, terminal);
    entries.iter().map(name).collect()
}

/// The lines of a table, the heading first.
pub(crate) fn long(
    entries: &[Listed],
    terminal: bool,
    width: Option<usize>,
    paint: Paint,
) -> Vec<String> {
    let rows: Vec<_> = entries.iter().map(|entry| row(entry, terminal)).collect();
    lines(["KIND", "SIZE", "MODIFIED", "NAME"], &rows, width, paint)
}

fn row(entry: &Listed, terminal: bool) -> [Cell; 4] {
    let name = Cell::plain(shown(entry, terminal));
    let Some(metadata) = &entry.metadata else {
        let unknown = || Cell::toned("?", Tone::Bad);
        return [unknown(), unknown(), unknown(), name];
    };
    let kind = match (metadata.is_directory, metadata.is_file) {
        (true, _) => "directory",
        (_, true) => "file",
        _ => "special",
    };
    let kind = match metadata.is_symlink {
        true => format!("link to {kind}"),
        false => kind.to_owned(),
    };
    [
        Cell::plain(kind),
        Cell::plain(metadata.size.to_string()),
        Cell::plain(time(metadata.modified_at_ms)),
        name,
    ]
}

/// What is printed for people does nothing to their terminal.
fn shown(entry: &Listed, terminal: bool) -> String {
    let slash = if entry.is_directory { "/" } else { "" };
    match terminal {
        true => format!("{}{slash}", visible(&entry.name)),
        false => format!("{}{slash}", entry.name),
    }
}

/// In UTC, which is the same wherever the file is.
fn time(since_1970: i64) -> String {
    let millis = Duration::from_millis(since_1970.unsigned_abs());
    let time = match since_1970 < 0 {
        true => UNIX_EPOCH.checked_sub(millis),
        false => UNIX_EPOCH.checked_add(millis),
    };
    // The library has no words for times before 1970 or after 9999.
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
    fn a_table_says_what_is_known() {
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
        let paint = Paint::on(&std::fs::File::open("/dev/null").unwrap());
        insta::assert_snapshot!(long(&entries, true, None, paint).join("\n"), @r"
        KIND               SIZE  MODIFIED              NAME
        file               1234  2026-11-16T02:03:00Z  a\nb
        directory          1234  2026-11-16T02:03:00Z  d/
        link to directory  1234  2026-11-16T02:03:00Z  l/
        ?                  ?     ?                     gone
        ");
        assert_eq!(short(&entries[..2], false), ["a\nb", "d/"]);
    }

    #[test]
    fn any_time_can_be_written() {
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(-1), "-1 ms");
        assert_eq!(time(i64::MAX), format!("{} ms", i64::MAX));
    }
}
