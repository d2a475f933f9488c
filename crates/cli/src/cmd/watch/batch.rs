//! Changes that are reported together, and how they are printed.

use std::{
    collections::BTreeSet,
    io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use outpost_client::FileChanges;
use serde_json::json;

use crate::render::{
    out::{self, note},
    visible::visible_json,
};

/// The bound of the paths that a command is told: the kernel limits a variable to 128 KiB.
const MAX_VARIABLE_BYTES: usize = 32 * 1024;

/// How batches are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// A line for each path, with text of others made visible.
    Lines,
    /// Each path as it is, with a null character behind it.
    Null,
    /// A JSON object for each batch.
    Json,
}

/// Changes that are reported together, with the paths as the user writes them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    paths: BTreeSet<PathBuf>,
    missed: bool,
    /// Directories whose changes are missed until they can be read.
    unreadable: BTreeSet<PathBuf>,
}

impl Batch {
    /// Replaces the watched path by the path that the user has given.
    pub(super) fn new(given: &Path, watched: &Path, changes: FileChanges) -> Self {
        let as_given = |path: PathBuf| match path.strip_prefix(watched) {
            Ok(rest) if rest.as_os_str().is_empty() => given.to_owned(),
            Ok(rest) => given.join(rest),
            Err(_) => path,
        };
        Batch {
            paths: changes.paths.into_iter().map(as_given).collect(),
            missed: changes.missed,
            unreadable: changes.unreadable.into_iter().map(as_given).collect(),
        }
    }

    /// Changes that are not known.
    pub(super) fn missed() -> Self {
        Batch {
            missed: true,
            ..Batch::default()
        }
    }

    pub(super) fn merge(&mut self, other: Batch) {
        self.paths.extend(other.paths);
        self.missed |= other.missed;
        self.unreadable.extend(other.unreadable);
    }

    /// Whether something has changed, or may have.
    pub(super) fn has_changes(&self) -> bool {
        self.missed || !self.paths.is_empty()
    }

    /// The environment variables that tell the command what has changed: `WATCH_PATHS` with a path per
    /// line, and `WATCH_MISSED`, which is 1 if that is not everything. Not `OUTPOST_*`, which never
    /// reaches a process.
    pub(super) fn variables(&self) -> [(&'static str, String); 2] {
        let mut lines = String::new();
        let mut missed = self.missed;
        for path in &self.paths {
            let line = path.to_str().filter(|path| !path.contains('\n'));
            match line {
                Some(line) if lines.len() + line.len() < MAX_VARIABLE_BYTES => {
                    lines.push_str(line);
                    lines.push('\n');
                }
                _ => missed = true,
            }
        }
        let missed = u8::from(missed).to_string();
        [("WATCH_PATHS", lines), ("WATCH_MISSED", missed)]
    }

    /// Prints what may have been missed to stderr.
    pub(super) fn tell_missed(&self) {
        for directory in &self.unreadable {
            note(&format!(
                "cannot read {directory:?}: changes in it are missed until its permissions are changed"
            ));
        }
        if self.missed {
            note("changes may have been missed");
        }
    }

    /// Prints the changes to stdout.
    pub(super) fn print(&self, format: Format) -> io::Result<()> {
        let paths = self.paths.iter().map(|path| path.to_string_lossy());
        match format {
            Format::Json => {
                let paths: Vec<_> = paths.collect();
                let mut line = json!({"paths": paths, "missed": self.missed});
                if !self.unreadable.is_empty() {
                    let directories = self.unreadable.iter().map(|path| path.to_string_lossy());
                    line["unreadable"] = directories.collect();
                }
                out::raw_lines([visible_json(&line.to_string())])
            }
            Format::Lines => {
                self.tell_missed();
                out::lines(paths)
            }
            Format::Null => {
                self.tell_missed();
                out::null_terminated(self.paths.iter().map(|path| path.as_os_str().as_bytes()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn paths_begin_as_they_were_given() {
        let shown = |given: &str| {
            let changes = FileChanges {
                paths: paths(&["/w/src", "/w/src/a/b", "/w/srcs"]),
                unreadable: paths(&["/w/src/secret"]),
                ..FileChanges::default()
            };
            let batch = Batch::new(given.as_ref(), "/w/src".as_ref(), changes);
            let shown = batch.paths.into_iter().chain(batch.unreadable);
            shown.collect::<Vec<_>>()
        };
        let here = ["/w/srcs", "src/", "src/a/b", "src/secret"];
        assert_eq!(shown("src/"), paths(&here));
        let there = [
            "/w/srcs",
            "build:/w/src",
            "build:/w/src/a/b",
            "build:/w/src/secret",
        ];
        assert_eq!(shown("build:/w/src"), paths(&there));
    }

    #[test]
    fn command_is_told_what_fits_and_whether_that_is_everything() {
        let variables = |names: &[&str]| {
            let changes = FileChanges {
                paths: paths(names),
                ..FileChanges::default()
            };
            Batch::new(Path::new("/"), Path::new("/"), changes).variables()
        };
        let told = |lines: &str, missed: &str| {
            [
                ("WATCH_PATHS", lines.to_owned()),
                ("WATCH_MISSED", missed.to_owned()),
            ]
        };
        assert_eq!(variables(&["/a", "/b c"]), told("/a\n/b c\n", "0"));
        assert_eq!(variables(&["/a", "/b\nc", "/d"]), told("/a\n/d\n", "1"));
        let long = "/l".repeat(MAX_VARIABLE_BYTES);
        assert_eq!(variables(&["/a", &long, "/z"]), told("/a\n/z\n", "1"));
        assert_eq!(Batch::missed().variables(), told("", "1"));
    }

    #[test]
    fn merged_batches_have_all_paths_once() {
        let mut batch = Batch {
            paths: paths(&["a", "c"]).into_iter().collect(),
            ..Batch::default()
        };
        batch.merge(Batch {
            paths: paths(&["b", "c"]).into_iter().collect(),
            missed: true,
            ..Batch::default()
        });
        assert_eq!(
            batch.paths.into_iter().collect::<Vec<_>>(),
            paths(&["a", "b", "c"])
        );
        assert!(batch.missed);
    }
}
