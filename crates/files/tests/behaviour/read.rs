//! Whole files and blocks of open files.

use std::fs;
use std::io::Write as _;

use outpost_files::{Files, Limits};
use outpost_types::Symlinks;

use crate::support::{FilesExt as _, Folder, failed, missing, rejected};

const FOLLOW: Symlinks = Symlinks::Follow;

#[test]
fn whole_file_is_read() {
    let folder = Folder::new();
    let files = Files::default();
    let path = folder.file("a", "hello");
    assert_eq!(files.read(&path, FOLLOW).unwrap(), b"hello");
    let link = folder.link("l", "a");
    assert_eq!(files.read(&link, FOLLOW).unwrap(), b"hello");
    missing(files.read(&folder.path("b"), FOLLOW));
    let directory = format!("path `{}` is not a file", folder.root().display());
    rejected(files.read(folder.root(), FOLLOW), &directory);
    failed(
        files.read(&folder.path("a/b"), FOLLOW),
        "Not a directory (os error 20)",
    );
}

#[test]
fn file_with_unknown_size_is_read() {
    // The kernel reports the size 0 for such files.
    let status = Files::default()
        .read("/proc/meminfo".as_ref(), FOLLOW)
        .unwrap();
    assert!(status.starts_with(b"MemTotal:"));
}

#[test]
fn read_size_is_limited() {
    let folder = Folder::new();
    let files = Files::new(Limits {
        file_bytes: 5,
        ..Limits::default()
    });
    assert_eq!(
        files.read(&folder.file("a", "12345"), FOLLOW).unwrap(),
        b"12345"
    );
    let large = folder.file("b", "123456");
    rejected(files.read(&large, FOLLOW), "file is larger than 5 bytes");
    rejected(
        files.read("/proc/meminfo".as_ref(), FOLLOW),
        "file is larger than 5 bytes",
    );
    let open = files.open(&large, FOLLOW).unwrap();
    rejected(open.size(), "file is larger than 5 bytes");
    assert_eq!(
        open.read_block(0, 10).unwrap().bytes,
        b"123456",
        "the limit does not apply to blocks"
    );
}

#[test]
fn blocks_are_read_at_any_offset() {
    let folder = Folder::new();
    let path = folder.file("a", "0123456789");
    let open = Files::default().open(&path, FOLLOW).unwrap();
    let block = |offset, len| {
        let block = open.read_block(offset, len).unwrap();
        (String::from_utf8(block.bytes).unwrap(), block.eof)
    };
    assert_eq!(
        block(6, 4),
        ("6789".to_owned(), false),
        "exactly to the end"
    );
    assert_eq!(block(10, 4), (String::new(), true));
    assert_eq!(block(0, 3), ("012".to_owned(), false));
    assert_eq!(block(8, 3), ("89".to_owned(), true));
    assert_eq!(block(i64::MAX as u64 - 1, 1), (String::new(), true));
    for offset in [i64::MAX as u64, u64::MAX] {
        rejected(open.read_block(offset, 1), "Invalid argument (os error 22)");
    }
    for len in [0, 1_048_577, u64::MAX] {
        rejected(
            open.read_block(0, len),
            "file read block length must be between 1 and 1048576",
        );
    }
}

#[test]
fn open_file_survives_replacement_of_its_path() {
    let folder = Folder::new();
    let path = folder.file("a", "old");
    let open = Files::default().open(&path, FOLLOW).unwrap();
    fs::rename(folder.file("b", "new"), &path).unwrap();
    assert_eq!(open.read_block(0, 10).unwrap().bytes, b"old");
    fs::remove_file(&path).unwrap();
    assert_eq!(open.read_block(0, 10).unwrap().bytes, b"old");
}

#[test]
fn open_file_sees_growth_and_truncation() {
    let folder = Folder::new();
    let path = folder.file("a", "12");
    let open = Files::default().open(&path, FOLLOW).unwrap();
    assert!(open.read_block(0, 4).unwrap().eof);
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"3456").unwrap();
    assert_eq!(open.read_block(0, 4).unwrap().bytes, b"1234");
    file.set_len(1).unwrap();
    assert_eq!(open.read_block(0, 4).unwrap().bytes, b"1");
    assert_eq!(open.size().unwrap(), 1);
}
