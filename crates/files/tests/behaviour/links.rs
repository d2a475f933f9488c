//! Links that are to be refused, wherever they are.

use std::path::Path;

use outpost_files::{Files, Links, Remove};

use crate::support::{Folder, by_all_means, missing, refused};

const WORDS: &str = "path contains a symbolic link";
const REFUSE: Links = Links::Refuse;
const REMOVE: Remove = Remove {
    recursive: true,
    force: true,
    links: REFUSE,
};

fn refuse_everything(files: &Files, path: &Path) {
    refused(files.read(path, REFUSE), WORDS);
    refused(files.open(path, REFUSE), WORDS);
    refused(files.write(path, b"x", REFUSE), WORDS);
    refused(files.create_directory(path, true, REFUSE), WORDS);
    refused(files.create_directory(path, false, REFUSE), WORDS);
    refused(files.metadata(path, REFUSE), WORDS);
    refused(files.remove(path, REMOVE), WORDS);
}

#[test]
fn in_any_component() {
    let folder = Folder::new();
    folder.file("real/dir/file", "x");
    folder.link("last", "real/dir/file");
    folder.link("broken", "nowhere");
    folder.link("to_dir", "real/dir");
    folder.link("real/up", "..");
    folder.link("loop", "loop");
    for files in by_all_means() {
        for path in [
            "last",
            "broken",
            "to_dir",
            "to_dir/file",
            "real/up/real/dir/file",
            "loop",
            "loop/x",
        ] {
            refuse_everything(&files, &folder.path(path));
        }
    }
    let names = ["broken", "last", "loop", "real", "to_dir"];
    assert_eq!(folder.names("."), names, "nothing was made or removed");
    assert_eq!(folder.names("real/dir"), ["file"]);
}

#[test]
fn what_has_none_is_served() {
    for files in by_all_means() {
        let folder = Folder::new();
        let root = folder.root().canonicalize().unwrap();
        let deep = root.join("a/b/c");
        files.create_directory(&deep, true, REFUSE).unwrap();
        files.create_directory(&deep, true, REFUSE).unwrap();
        files
            .create_directory(&deep.join("d"), false, REFUSE)
            .unwrap();
        let file = deep.join("file");
        files.write(&file, b"hello", REFUSE).unwrap();
        assert_eq!(files.read(&file, REFUSE).unwrap(), b"hello");
        let found = files.metadata(&file, REFUSE).unwrap();
        assert!(found.is_file && !found.is_symlink);
        assert_eq!(found, files.metadata(&file, Links::Follow).unwrap());
        missing(files.read(&deep.join("no"), REFUSE));
        missing(files.metadata(&deep.join("no/no"), REFUSE));
        files.remove(&file, REMOVE).unwrap();
        missing(files.metadata(&file, REFUSE));
        files.remove(&root.join("a"), REMOVE).unwrap();
        assert!(folder.names(".").is_empty());
        assert!(files.metadata(Path::new("/"), REFUSE).unwrap().is_directory);
    }
}

#[test]
fn a_file_in_the_way_is_no_link() {
    let folder = Folder::new();
    let file = folder.file("a", "x");
    for files in by_all_means() {
        for path in [file.join("b"), file.join("b/c")] {
            let (_, words) = crate::support::why(files.read(&path, REFUSE));
            assert_eq!(words, "Not a directory (os error 20)");
            let (_, words) = crate::support::why(files.create_directory(&path, true, REFUSE));
            assert_eq!(words, "Not a directory (os error 20)");
        }
    }
}
