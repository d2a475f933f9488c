//! Walks and their limits.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use outpost_files::{Files, Limits};
use outpost_types::{EntryKind, WalkOptions, WalkResult};

use crate::support::{FilesExt as _, Folder, missing, rejected};

const ALL: WalkOptions = WalkOptions {
    max_depth: 64,
    max_directories: 10_000,
    max_entries: 50_000,
    follow_directory_symlinks: false,
    prune_hidden_directories: false,
};

fn walk(folder: &Folder, options: WalkOptions) -> WalkResult {
    Files::default().walk(folder.root(), options).unwrap()
}

/// The paths relative to the root, directories with a trailing slash.
fn listed(folder: &Folder, walk: &WalkResult) -> Vec<String> {
    let line = |path: &Path, kind| {
        let path = path.strip_prefix(folder.root()).unwrap().display();
        match kind {
            EntryKind::Directory => format!("{path}/"),
            EntryKind::File => path.to_string(),
        }
    };
    let entries = walk.entries.iter();
    entries.map(|entry| line(&entry.path, entry.kind)).collect()
}

fn tree() -> Folder {
    let folder = Folder::new();
    folder.file("b/z", "");
    folder.file("b/.hidden/x", "");
    folder.file("a/deep/er/y", "");
    folder.file("c", "");
    folder.fifo("fifo");
    folder.link("to_file", "c");
    folder.link("broken", "nowhere");
    folder.link("d", "a/deep");
    folder
}

#[test]
fn entries_come_level_by_level_sorted_by_name() {
    let folder = tree();
    let found = walk(&folder, ALL);
    let expected = [
        "a/",
        "b/",
        "c",
        "a/deep/",
        "b/.hidden/",
        "b/z",
        "a/deep/er/",
        "b/.hidden/x",
        "a/deep/er/y",
    ];
    assert_eq!(listed(&folder, &found), expected);
    assert!(found.errors.is_empty() && !found.truncated);
}

#[test]
fn pruned_hidden_directories_are_listed_but_not_read() {
    let folder = tree();
    let options = WalkOptions {
        prune_hidden_directories: true,
        ..ALL
    };
    let expected = [
        "a/",
        "b/",
        "c",
        "a/deep/",
        "b/.hidden/",
        "b/z",
        "a/deep/er/",
        "a/deep/er/y",
    ];
    assert_eq!(listed(&folder, &walk(&folder, options)), expected);
}

#[test]
fn directory_links_are_followed_once() {
    let folder = tree();
    folder.link("a/up", "..");
    let options = WalkOptions {
        follow_directory_symlinks: true,
        ..ALL
    };
    let found = walk(&folder, options);
    let expected = [
        "a/",
        "b/",
        "c",
        "d/",
        "a/deep/",
        "a/up/",
        "b/.hidden/",
        "b/z",
        "d/er/",
        "b/.hidden/x",
        "d/er/y",
    ];
    assert_eq!(listed(&folder, &found), expected);
    assert!(found.errors.is_empty() && !found.truncated);
}

#[test]
fn depth_zero_lists_only_the_root() {
    let folder = tree();
    let options = WalkOptions {
        max_depth: 0,
        ..ALL
    };
    let found = walk(&folder, options);
    assert_eq!(listed(&folder, &found), ["a/", "b/", "c"]);
    assert!(!found.truncated, "the depth is part of the request");
}

#[test]
fn entry_and_directory_limits_truncate() {
    let folder = tree();
    let few = walk(
        &folder,
        WalkOptions {
            max_entries: 3,
            ..ALL
        },
    );
    assert_eq!(
        listed(&folder, &few),
        ["a/", "b/"],
        "the broken link counts as examined"
    );
    assert!(few.truncated);
    let few = walk(
        &folder,
        WalkOptions {
            max_directories: 2,
            ..ALL
        },
    );
    assert_eq!(listed(&folder, &few), ["a/", "b/", "c", "a/deep/"]);
    assert!(few.truncated);
}

/// The exact encoded size of the entries and errors.
fn encoded_bytes(found: &WalkResult) -> usize {
    let uri = |path: &Path| {
        let bytes = path.as_os_str().as_bytes().iter();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        let length = bytes.map(|byte| if plain(*byte) { 1 } else { 3 });
        length.sum::<usize>()
    };
    let entries = found.entries.iter().map(|entry| {
        let kind = match entry.kind {
            EntryKind::Directory => "directory",
            EntryKind::File => "file",
        };
        uri(&entry.path) + kind.len() + 29
    });
    let errors = found.errors.iter();
    let errors = errors.map(|error| {
        let reason = error.reason.as_ref().map_or(0, |reason| reason.len() + 12);
        uri(&error.path) + error.message.len() + 32 + reason
    });
    entries.sum::<usize>() + errors.sum::<usize>()
}

#[test]
fn encoded_size_is_bounded_and_fully_used() {
    // The size of an empty response.
    const EMPTY: usize = 81;
    let folder = Folder::new();
    for number in 0..60 {
        folder.file(&format!("ä{number:03}"), "");
        folder.directory(&format!("b{number:03}"));
        let name = [b"c\xe9", number.to_string().as_bytes()].concat();
        std::fs::write(folder.root().join(OsStr::from_bytes(&name)), "").unwrap();
    }
    let all = walk(&folder, ALL);
    assert_eq!((all.entries.len(), all.errors.len()), (120, 60));
    let whole = EMPTY + encoded_bytes(&all);
    let within = |walk_bytes| {
        let limits = Limits {
            walk_bytes,
            ..Limits::default()
        };
        Files::new(limits).walk(folder.root(), ALL).unwrap()
    };
    assert_eq!(within(whole), all);
    let cut = within(whole - 1);
    assert!(cut.truncated && cut.entries.len() + cut.errors.len() == 179);
    let few = within(4096);
    let spent = EMPTY + encoded_bytes(&few);
    let longest = folder.root().as_os_str().len() * 3 + 100;
    assert!(
        few.truncated && spent <= 4096 && spent + longest > 4096,
        "{spent}"
    );
}

#[test]
fn options_are_checked_before_the_root() {
    let nowhere = Path::new("/no/such/directory");
    let files = Files::default();
    let walk = |options| files.walk(nowhere, options);
    let zero = "filesystem walk limits must be greater than zero";
    rejected(
        walk(WalkOptions {
            max_directories: 0,
            ..ALL
        }),
        zero,
    );
    rejected(
        walk(WalkOptions {
            max_entries: 0,
            ..ALL
        }),
        zero,
    );
    let far = "filesystem walk limits exceed maximums: depth=64, directories=10000, entries=50000";
    rejected(
        walk(WalkOptions {
            max_depth: 65,
            ..ALL
        }),
        far,
    );
    rejected(
        walk(WalkOptions {
            max_directories: 10_001,
            ..ALL
        }),
        far,
    );
    rejected(
        walk(WalkOptions {
            max_entries: 50_001,
            ..ALL
        }),
        far,
    );
    missing(walk(ALL));
}

#[test]
fn non_directory_root_gives_empty_result() {
    let folder = tree();
    let files = Files::default();
    assert_eq!(
        files.walk(&folder.path("c"), ALL).unwrap(),
        WalkResult::default()
    );
    assert_eq!(
        files.walk(&folder.path("d"), ALL).unwrap(),
        WalkResult::default()
    );
    missing(files.walk(&folder.path("broken"), ALL));
    let options = WalkOptions {
        follow_directory_symlinks: true,
        ..ALL
    };
    assert_eq!(
        files
            .walk(&folder.path("d"), options)
            .unwrap()
            .entries
            .len(),
        2
    );
}

#[test]
fn non_utf8_name_is_reported_as_error() {
    let folder = Folder::new();
    folder.file("after", "");
    let name = OsStr::from_bytes(b"caf\xe9");
    std::fs::create_dir(folder.root().join(name)).unwrap();
    std::fs::write(folder.root().join(name).join("below"), "").unwrap();
    let found = walk(&folder, ALL);
    assert_eq!(listed(&folder, &found), ["after"]);
    assert_eq!(found.errors.len(), 1);
    assert_eq!(found.errors[0].path, folder.path("caf\u{fffd}"));
    let message = "No such file or directory (os error 2)";
    assert_eq!(found.errors[0].message, message);
    let reason = found.errors[0].reason.as_deref();
    assert_eq!(reason, Some("file name is not valid UTF-8"));
}

#[test]
fn entry_limit_keeps_the_first_names() {
    let folder = Folder::new();
    for name in ["many/3", "many/1", "many/4", "many/2", "z/1"] {
        folder.file(name, "");
    }
    // The limit of listings does not apply to walks.
    let limits = Limits {
        directory_entries: 2,
        ..Limits::default()
    };
    let walk = |max_entries| {
        let options = WalkOptions { max_entries, ..ALL };
        Files::new(limits).walk(folder.root(), options).unwrap()
    };
    let all = ["many/", "z/", "many/1", "many/2", "many/3", "many/4", "z/1"];
    let found = walk(7);
    assert_eq!(listed(&folder, &found), all);
    assert!(found.errors.is_empty() && !found.truncated);
    for enough in 1..7 {
        let found = walk(enough);
        assert_eq!(
            listed(&folder, &found),
            all[..usize::try_from(enough).unwrap()]
        );
        assert!(found.errors.is_empty() && found.truncated, "{enough}");
    }
}

#[test]
fn entry_maximum_is_reached_across_directories() {
    let folder = Folder::new();
    for directory in 0..50 {
        folder.directory(&format!("d{directory}"));
        for file in 0..999 {
            let path = folder.path(&format!("d{directory}/{file}"));
            std::fs::File::create(path).unwrap();
        }
    }
    // The path of the temporary directory counts towards the size.
    let files = Files::new(Limits {
        walk_bytes: 64 * 1024 * 1024,
        ..Limits::default()
    });
    let found = files.walk(folder.root(), ALL).unwrap();
    assert_eq!(found.entries.len(), 50_000);
    assert!(!found.truncated && found.errors.is_empty());
    folder.file("one more", "");
    let found = files.walk(folder.root(), ALL).unwrap();
    assert_eq!(found.entries.len(), 50_000);
    assert!(found.truncated);
}

#[test]
fn entry_maximum_is_reached_in_one_directory() {
    let folder = Folder::new();
    for file in 0..50_001 {
        std::fs::File::create(folder.path(&format!("{file:05}"))).unwrap();
    }
    let files = Files::new(Limits {
        walk_bytes: 64 * 1024 * 1024,
        ..Limits::default()
    });
    let found = files.walk(folder.root(), ALL).unwrap();
    assert_eq!(found.entries.len(), 50_000);
    assert_eq!(found.entries[49_999].path, folder.path("49999"));
    assert!(found.truncated && found.errors.is_empty());
}
