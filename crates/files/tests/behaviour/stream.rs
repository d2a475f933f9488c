//! Atomic replacement of a file in blocks.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use outpost_files::Files;

use crate::support::{FilesExt as _, Folder, failed, missing, rejected};

#[test]
fn commit_replaces_the_file_at_once() {
    let folder = Folder::new();
    let path = folder.file("a", "old");
    let writer = Files::default().create_stream(&path).unwrap();
    writer.write_block(3, b"def").unwrap();
    writer.write_block(0, b"abc").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    writer.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"abcdef");
    assert_eq!(folder.names("."), ["a"]);
}

#[test]
fn open_reader_keeps_the_old_content() {
    let folder = Folder::new();
    let files = Files::default();
    let path = folder.file("a", "old");
    let open = files.open(&path, outpost_types::Symlinks::Follow).unwrap();
    let writer = files.create_stream(&path).unwrap();
    writer.write_block(0, b"new").unwrap();
    writer.commit().unwrap();
    assert_eq!(open.read_block(0, 9).unwrap().bytes, b"old");
}

#[test]
fn dropped_writer_leaves_no_trace() {
    let folder = Folder::new();
    let files = Files::default();
    let path = folder.file("a", "old");
    let writer = files.create_stream(&path).unwrap();
    writer.write_block(0, b"new").unwrap();
    drop(writer);
    drop(files.create_stream(&folder.path("b")).unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(folder.names("."), ["a"]);
}

#[test]
fn commit_keeps_mode_and_owner() {
    let folder = Folder::new();
    let files = Files::default();
    let path = folder.file("a", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        std::os::unix::fs::chown(&path, Some(12345), Some(54321)).unwrap();
    }
    let before = fs::metadata(&path).unwrap();
    let writer = files.create_stream(&path).unwrap();
    writer.commit().unwrap();
    let after = fs::metadata(&path).unwrap();
    let about = |stat: &fs::Metadata| (stat.mode(), stat.uid(), stat.gid());
    assert_eq!(about(&before), about(&after));
    assert_ne!(before.ino(), after.ino(), "the inode is new");
}

#[test]
fn new_file_gets_the_default_mode() {
    let folder = Folder::new();
    let path = folder.path("a");
    Files::default()
        .create_stream(&path)
        .unwrap()
        .commit()
        .unwrap();
    let other = fs::metadata(folder.file("b", "")).unwrap();
    let created = fs::metadata(&path).unwrap();
    assert_eq!((created.mode(), created.len()), (other.mode(), 0));
}

#[test]
fn target_of_symlink_is_replaced() {
    let folder = Folder::new();
    let files = Files::default();
    let path = folder.file("real/a", "old");
    let link = folder.link("l", "real/a");
    let writer = files.create_stream(&link).unwrap();
    writer.write_block(0, b"new").unwrap();
    writer.commit().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&path).unwrap(), b"new");
    missing(files.create_stream(&folder.link("broken", "nowhere")));
}

#[test]
fn directories_cannot_be_replaced() {
    let folder = Folder::new();
    let files = Files::default();
    missing(files.create_stream(&folder.path("no/a")));
    failed(
        files.create_stream(&folder.directory("d")),
        "Is a directory (os error 21)",
    );
    // The directory is created before the commit.
    let writer = files.create_stream(&folder.path("later")).unwrap();
    folder.directory("later");
    failed(writer.commit(), "Is a directory (os error 21)");
    assert_eq!(folder.names("."), ["d", "later"]);
}

#[test]
fn gaps_are_zero_and_offsets_are_limited() {
    let folder = Folder::new();
    let path = folder.path("a");
    let writer = Files::default().create_stream(&path).unwrap();
    writer.write_block(4, b"x").unwrap();
    for offset in [u64::MAX, i64::MAX as u64] {
        rejected(
            writer.write_block(offset, b"x"),
            "file write range exceeds the signed 64-bit file offset limit",
        );
    }
    writer.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"\0\0\0\0x");
}
