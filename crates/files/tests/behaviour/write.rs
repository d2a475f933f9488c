//! Overwriting a file in place.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use outpost_files::Files;
use outpost_types::Symlinks;

use crate::support::{FilesExt as _, Folder, failed, missing};

#[test]
fn write_creates_or_overwrites() {
    let folder = Folder::new();
    let files = Files::default();
    let path = folder.path("a");
    files
        .write(&path, b"long content", Symlinks::Follow)
        .unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"long content");
    files.write(&path, b"short", Symlinks::Follow).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"short");
    files.write(&path, b"", Symlinks::Follow).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"");
    missing(files.write(&folder.path("no/b"), b"", Symlinks::Follow));
    failed(
        files.write(folder.root(), b"", Symlinks::Follow),
        "Is a directory (os error 21)",
    );
}

#[test]
fn write_keeps_inode_mode_and_owner() {
    let folder = Folder::new();
    let files = Files::default();
    let path = folder.file("a", "old");
    let other = folder.path("b");
    fs::hard_link(&path, &other).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let before = fs::metadata(&path).unwrap();
    files.write(&path, b"new", Symlinks::Follow).unwrap();
    let after = fs::metadata(&path).unwrap();
    let about = |stat: &fs::Metadata| {
        (
            stat.ino(),
            stat.mode(),
            stat.uid(),
            stat.gid(),
            stat.nlink(),
        )
    };
    assert_eq!(about(&before), about(&after));
    assert_eq!(fs::read(&other).unwrap(), b"new");
}

#[test]
fn target_of_symlink_is_written() {
    let folder = Folder::new();
    let files = Files::default();
    let target = folder.file("a", "old");
    let link = folder.link("l", "a");
    files.write(&link, b"new", Symlinks::Follow).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}
