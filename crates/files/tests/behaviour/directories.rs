//! Making directories, listing them, and looking at what is there.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use outpost_files::{Files, Limits};
use outpost_types::Symlinks;

use crate::support::{FilesExt as _, Folder, failed, missing};

const FOLLOW: Symlinks = Symlinks::Follow;

#[test]
fn create_directory_alone_or_with_parents() {
    let folder = Folder::new();
    let files = Files::default();
    let deep = folder.path("a/b");
    missing(files.create_directory(&deep, false, FOLLOW));
    files.create_directory(&deep, true, FOLLOW).unwrap();
    files.create_directory(&deep, true, FOLLOW).unwrap();
    failed(
        files.create_directory(&deep, false, FOLLOW),
        "File exists (os error 17)",
    );
    failed(
        files.create_directory(Path::new("/"), false, FOLLOW),
        "File exists (os error 17)",
    );
    let file = folder.file("file", "");
    failed(
        files.create_directory(&file, true, FOLLOW),
        "File exists (os error 17)",
    );
    folder.link("link", "a");
    files
        .create_directory(&folder.path("link/c"), true, FOLLOW)
        .unwrap();
    assert_eq!(folder.names("a"), ["b", "c"]);
}

#[test]
fn entries_are_described_by_their_targets() {
    let folder = Folder::new();
    folder.file("file", "");
    folder.directory("directory");
    folder.fifo("fifo");
    folder.link("to_file", "file");
    folder.link("to_directory", "directory");
    folder.link("broken", "nowhere");
    folder.link("loop", "loop");
    folder.link("through_file", "file/x");
    let entries = Files::default().read_directory(folder.root()).unwrap();
    let entries: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                entry.file_name.as_str(),
                entry.is_directory,
                entry.is_file,
                entry.is_broken_link,
            )
        })
        .collect();
    let expected = [
        ("broken", false, false, true),
        ("directory", true, false, false),
        ("fifo", false, false, false),
        ("file", false, true, false),
        ("loop", false, false, true),
        ("through_file", false, false, true),
        ("to_directory", true, false, false),
        ("to_file", false, true, false),
    ];
    assert_eq!(entries, expected);
}

#[test]
fn non_utf8_name_is_listed_lossily() {
    let folder = Folder::new();
    let name = OsStr::from_bytes(b"caf\xe9");
    std::fs::write(folder.root().join(name), "").unwrap();
    let entries = Files::default().read_directory(folder.root()).unwrap();
    assert_eq!(entries[0].file_name, "caf\u{fffd}");
}

#[test]
fn directory_entries_are_limited() {
    let folder = Folder::new();
    for number in 0..4 {
        folder.file(&number.to_string(), "");
    }
    let limited = |directory_entries| {
        Files::new(Limits {
            directory_entries,
            ..Limits::default()
        })
    };
    assert_eq!(limited(4).read_directory(folder.root()).unwrap().len(), 4);
    failed(
        limited(3).read_directory(folder.root()),
        "directory has more than 3 entries",
    );
    let files = Files::default();
    missing(files.read_directory(&folder.path("no")));
    failed(
        files.read_directory(&folder.path("0")),
        "Not a directory (os error 20)",
    );
    failed(
        files.read_directory(&folder.fifo("fifo")),
        "Not a directory (os error 20)",
    );
}

#[test]
fn metadata_describes_the_target() {
    let folder = Folder::new();
    let files = Files::default();
    let path = folder.file("file", "hello");
    let link = folder.link("link", "file");
    let before_1970 = SystemTime::UNIX_EPOCH - Duration::from_millis(1500);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(before_1970).unwrap();
    let found = files.metadata(&path, FOLLOW).unwrap();
    assert!(found.is_file && !found.is_directory && !found.is_symlink);
    assert_eq!((found.size, found.modified_at_ms), (5, -1500));
    let through = files.metadata(&link, FOLLOW).unwrap();
    assert!(through.is_symlink && through.is_file);
    assert_eq!((through.size, through.modified_at_ms), (5, -1500));
    if let Ok(created) = std::fs::metadata(&path).unwrap().created() {
        let since = created.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(found.created_at_ms, since.as_millis() as i64);
    }
    missing(files.metadata(&folder.link("broken", "nowhere"), FOLLOW));
    failed(
        files.metadata(&folder.link("loop", "loop"), FOLLOW),
        "Too many levels of symbolic links (os error 40)",
    );
    assert!(files.metadata(folder.root(), FOLLOW).unwrap().is_directory);
}

#[test]
fn canonicalize_resolves_links() {
    let folder = Folder::new();
    let files = Files::default();
    let root = folder.root().canonicalize().unwrap();
    folder.file("a/file", "");
    folder.link("b", "a");
    let found = files.canonicalize(&folder.path("b/file")).unwrap();
    assert_eq!(found, root.join("a/file"));
    missing(files.canonicalize(&folder.path("b/no")));
}
