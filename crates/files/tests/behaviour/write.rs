//! Writing a file where it is.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use outpost_files::{Files, Links};

use crate::support::{Folder, failed, missing};

#[test]
fn a_new_file_and_an_old_one() {
    let folder = Folder::new();
    let files = Files::default();
    let path = folder.path("a");
    files.write(&path, b"long content", Links::Follow).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"long content");
    files.write(&path, b"short", Links::Follow).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"short");
    files.write(&path, b"", Links::Follow).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"");
    missing(files.write(&folder.path("no/b"), b"", Links::Follow));
    failed(
        files.write(folder.root(), b"", Links::Follow),
        "Is a directory (os error 21)",
    );
}

#[test]
fn what_is_there_stays_the_file_it_is() {
    let folder = Folder::new();
    let files = Files::default();
    let path = folder.file("a", "old");
    let other = folder.path("b");
    fs::hard_link(&path, &other).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let before = fs::metadata(&path).unwrap();
    files.write(&path, b"new", Links::Follow).unwrap();
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
fn a_link_stays_and_its_target_is_written() {
    let folder = Folder::new();
    let files = Files::default();
    let target = folder.file("a", "old");
    let link = folder.link("l", "a");
    files.write(&link, b"new", Links::Follow).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}
