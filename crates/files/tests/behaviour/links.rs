//! Rejection of paths with symbolic links.

use std::path::Path;

use outpost_files::Files;
use outpost_types::Symlinks;

use crate::support::{FilesExt as _, Folder, Remove, missing, rejected, with_each_symlink_check};

const MESSAGE: &str = "path contains a symbolic link";
const REJECT: Symlinks = Symlinks::Reject;
const REMOVE: Remove = Remove {
    recursive: true,
    force: true,
    symlinks: REJECT,
};

fn assert_all_rejected(files: &Files, path: &Path) {
    rejected(files.read(path, REJECT), MESSAGE);
    rejected(files.open(path, REJECT), MESSAGE);
    rejected(files.write(path, b"x", REJECT), MESSAGE);
    rejected(files.create_directory(path, true, REJECT), MESSAGE);
    rejected(files.create_directory(path, false, REJECT), MESSAGE);
    rejected(files.metadata(path, REJECT), MESSAGE);
    rejected(files.remove(path, REMOVE), MESSAGE);
}

#[test]
fn symlink_in_any_component_is_rejected() {
    let folder = Folder::new();
    folder.file("real/dir/file", "x");
    folder.link("last", "real/dir/file");
    folder.link("broken", "nowhere");
    folder.link("to_dir", "real/dir");
    folder.link("real/up", "..");
    folder.link("loop", "loop");
    for files in with_each_symlink_check() {
        for path in [
            "last",
            "broken",
            "to_dir",
            "to_dir/file",
            "real/up/real/dir/file",
            "loop",
            "loop/x",
        ] {
            assert_all_rejected(&files, &folder.path(path));
        }
    }
    let names = ["broken", "last", "loop", "real", "to_dir"];
    assert_eq!(folder.names("."), names, "nothing was created or removed");
    assert_eq!(folder.names("real/dir"), ["file"]);
}

#[test]
fn path_without_symlinks_is_accepted() {
    for files in with_each_symlink_check() {
        let folder = Folder::new();
        let root = folder.root().canonicalize().unwrap();
        let deep = root.join("a/b/c");
        files.create_directory(&deep, true, REJECT).unwrap();
        files.create_directory(&deep, true, REJECT).unwrap();
        files
            .create_directory(&deep.join("d"), false, REJECT)
            .unwrap();
        let file = deep.join("file");
        files.write(&file, b"hello", REJECT).unwrap();
        assert_eq!(files.read(&file, REJECT).unwrap(), b"hello");
        let found = files.metadata(&file, REJECT).unwrap();
        assert!(found.is_file && !found.is_symlink);
        assert_eq!(found, files.metadata(&file, Symlinks::Follow).unwrap());
        missing(files.read(&deep.join("no"), REJECT));
        missing(files.metadata(&deep.join("no/no"), REJECT));
        files.remove(&file, REMOVE).unwrap();
        missing(files.metadata(&file, REJECT));
        files.remove(&root.join("a"), REMOVE).unwrap();
        assert!(folder.names(".").is_empty());
        assert!(files.metadata(Path::new("/"), REJECT).unwrap().is_directory);
    }
}

#[test]
fn file_as_parent_is_not_reported_as_symlink() {
    let folder = Folder::new();
    let file = folder.file("a", "x");
    for files in with_each_symlink_check() {
        for path in [file.join("b"), file.join("b/c")] {
            let (_, message) = crate::support::failure(files.read(&path, REJECT));
            assert_eq!(message, "Not a directory (os error 20)");
            let (_, message) = crate::support::failure(files.create_directory(&path, true, REJECT));
            assert_eq!(message, "Not a directory (os error 20)");
        }
    }
}
