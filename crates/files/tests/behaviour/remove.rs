//! Removing.

use std::fs;
use std::path::Path;

use outpost_files::{Files, Links, Remove};

use crate::support::{Folder, failed, missing};

const ALL: Remove = Remove {
    recursive: true,
    force: true,
    links: Links::Follow,
};

#[test]
fn files_links_and_trees() {
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
fn through_a_link_on_the_way() {
    let folder = Folder::new();
    folder.file("real/file", "");
    folder.link("link", "real");
    Files::default()
        .remove(&folder.path("link/file"), ALL)
        .unwrap();
    assert!(folder.names("real").is_empty());
}

#[test]
fn what_is_missing() {
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
fn without_recursion_only_what_is_empty() {
    let folder = Folder::new();
    let files = Files::default();
    let how = Remove {
        recursive: false,
        ..ALL
    };
    let file = folder.file("full/file", "");
    failed(
        files.remove(&folder.path("full"), how),
        "Directory not empty (os error 39)",
    );
    files.remove(&file, how).unwrap();
    files.remove(&folder.path("full"), how).unwrap();
    assert!(folder.names(".").is_empty());
    failed(
        files.remove(Path::new("/"), ALL),
        "Device or resource busy (os error 16)",
    );
}

#[test]
fn deeper_than_any_path_and_than_there_are_descriptors() {
    let folder = Folder::new();
    let mut place = rustix::fs::open(
        folder.root(),
        rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::RDONLY,
        rustix::fs::Mode::empty(),
    )
    .unwrap();
    for _ in 0..3000 {
        rustix::fs::mkdirat(&place, "d", rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::RDONLY;
        place = rustix::fs::openat(&place, "d", flags, rustix::fs::Mode::empty()).unwrap();
    }
    Files::default().remove(&folder.path("d"), ALL).unwrap();
    assert!(folder.names(".").is_empty());
}

#[test]
fn more_names_than_are_read_at_once() {
    let folder = Folder::new();
    folder.directory("d");
    for number in 0..9000 {
        fs::File::create(folder.path(&format!("d/{number}"))).unwrap();
    }
    Files::default().remove(&folder.path("d"), ALL).unwrap();
    assert!(folder.names(".").is_empty());
}
