//! Removal of files, links and trees.

use std::fs;
use std::path::Path;

use outpost_files::Files;
use outpost_types::Symlinks;

use crate::support::{FilesExt as _, Folder, Remove, failed, missing};

const ALL: Remove = Remove {
    recursive: true,
    force: true,
    symlinks: Symlinks::Follow,
};

#[test]
fn files_links_and_trees_are_removed() {
    let folder = Folder::new();
    let files = Files::default();
    folder.file("keep/file", "kept");
    folder.file("tree/a/b/file", "");
    folder.link("tree/a/to_keep", folder.path("keep"));
    folder.link("tree/broken", "nowhere");
    folder.fifo("tree/fifo");
    let link = folder.link("link", "keep");
    files.remove(&link, ALL).unwrap();
    files.remove(&folder.path("tree"), ALL).unwrap();
    files.remove(&folder.file("file", ""), ALL).unwrap();
    assert_eq!(folder.names("."), ["keep"]);
    assert_eq!(fs::read(folder.path("keep/file")).unwrap(), b"kept");
}

#[test]
fn link_in_parent_path_is_followed() {
    let folder = Folder::new();
    folder.file("real/file", "");
    folder.link("link", "real");
    Files::default()
        .remove(&folder.path("link/file"), ALL)
        .unwrap();
    assert!(folder.names("real").is_empty());
}

#[test]
fn missing_path_fails_unless_forced() {
    let folder = Folder::new();
    let files = Files::default();
    for path in ["no", "no/no"] {
        let path = folder.path(path);
        files.remove(&path, ALL).unwrap();
        missing(files.remove(
            &path,
            Remove {
                force: false,
                ..ALL
            },
        ));
    }
}

#[test]
fn non_recursive_removal_needs_empty_directory() {
    let folder = Folder::new();
    let files = Files::default();
    let options = Remove {
        recursive: false,
        ..ALL
    };
    let file = folder.file("full/file", "");
    failed(
        files.remove(&folder.path("full"), options),
        "Directory not empty (os error 39)",
    );
    files.remove(&file, options).unwrap();
    files.remove(&folder.path("full"), options).unwrap();
    assert!(folder.names(".").is_empty());
    failed(
        files.remove(Path::new("/"), ALL),
        "Device or resource busy (os error 16)",
    );
}

#[test]
fn very_deep_tree_is_removed() {
    let folder = Folder::new();
    let mut directory = rustix::fs::open(
        folder.root(),
        rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::RDONLY,
        rustix::fs::Mode::empty(),
    )
    .unwrap();
    for _ in 0..3000 {
        rustix::fs::mkdirat(&directory, "d", rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::RDONLY;
        directory = rustix::fs::openat(&directory, "d", flags, rustix::fs::Mode::empty()).unwrap();
    }
    Files::default().remove(&folder.path("d"), ALL).unwrap();
    assert!(folder.names(".").is_empty());
}

#[test]
fn directory_with_many_batches_is_removed() {
    let folder = Folder::new();
    folder.directory("d");
    for number in 0..9000 {
        fs::File::create(folder.path(&format!("d/{number}"))).unwrap();
    }
    Files::default().remove(&folder.path("d"), ALL).unwrap();
    assert!(folder.names(".").is_empty());
}
