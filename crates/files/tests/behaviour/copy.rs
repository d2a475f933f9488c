//! Copying.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use outpost_files::{Files, Limits};

use crate::support::{Folder, failed, missing, refused};

const ITSELF: &str = "fs/copy cannot copy a directory to itself or one of its descendants";

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_file_keeps_its_mode_but_gives_no_rights_away() {
    let folder = Folder::new();
    let files = Files::default();
    let source = folder.file("a", "hello");
    set_mode(&source, 0o4751);
    let copy = folder.path("b");
    files.copy(&source, &copy, false).unwrap();
    assert_eq!(fs::read(&copy).unwrap(), b"hello");
    assert_eq!(mode(&copy), 0o751);
    files
        .copy(&folder.file("c", "other"), &copy, false)
        .unwrap();
    assert_eq!(fs::read(&copy).unwrap(), b"other", "over what is there");
    missing(files.copy(&folder.path("no"), &copy, false));
    missing(files.copy(&source, &folder.path("no/no"), false));
    failed(
        files.copy(&source, folder.root(), false),
        "Is a directory (os error 21)",
    );
}

#[test]
fn a_file_onto_itself_stays() {
    let folder = Folder::new();
    let files = Files::default();
    let source = folder.file("a", "hello");
    let link = folder.link("l", "a");
    let other = folder.path("b");
    fs::hard_link(&source, &other).unwrap();
    for copy in [&source, &link, &other] {
        files.copy(&source, copy, false).unwrap();
        assert_eq!(fs::read(&source).unwrap(), b"hello");
    }
}

#[test]
fn a_link_stays_a_link() {
    let folder = Folder::new();
    let files = Files::default();
    let link = folder.link("l", "no/where");
    let copy = folder.path("m");
    files.copy(&link, &copy, false).unwrap();
    assert_eq!(fs::read_link(&copy).unwrap(), Path::new("no/where"));
    failed(files.copy(&link, &copy, true), "File exists (os error 17)");
}

#[test]
fn a_tree() {
    let folder = Folder::new();
    let files = Files::default();
    folder.file("tree/a/b/file", "hello");
    set_mode(&folder.file("tree/script", "x"), 0o755);
    folder.link("tree/a/link", "../script");
    folder.fifo("tree/a/fifo");
    set_mode(&folder.path("tree/a/b"), 0o555);
    let source = folder.path("tree");
    refused(
        files.copy(&source, &folder.path("copy"), false),
        "fs/copy requires recursive: true when sourcePath is a directory",
    );
    let copy = folder.path("new/copy");
    files.copy(&source, &copy, true).unwrap();
    assert_eq!(folder.names("new/copy"), ["a", "script"]);
    assert_eq!(folder.names("new/copy/a"), ["b", "link"]);
    assert_eq!(fs::read(copy.join("a/b/file")).unwrap(), b"hello");
    assert_eq!(
        fs::read_link(copy.join("a/link")).unwrap(),
        Path::new("../script")
    );
    assert_eq!(
        (mode(&copy.join("a/b")), mode(&copy.join("script"))),
        (0o555, 0o755)
    );
    // Otherwise only root could remove the folder.
    set_mode(&folder.path("tree/a/b"), 0o755);
    set_mode(&copy.join("a/b"), 0o755);
}

#[test]
fn onto_what_is_there() {
    let folder = Folder::new();
    let files = Files::default();
    folder.file("tree/a/file", "new");
    folder.file("copy/a/file", "old");
    folder.file("copy/a/other", "stays");
    files
        .copy(&folder.path("tree"), &folder.path("copy"), true)
        .unwrap();
    assert_eq!(fs::read(folder.path("copy/a/file")).unwrap(), b"new");
    assert_eq!(fs::read(folder.path("copy/a/other")).unwrap(), b"stays");
    folder.file("outside/file", "outside");
    folder.file("second/a", "x");
    folder.link("second/file", folder.path("outside/file"));
    folder.file("first/file", "inside");
    let (_, words) =
        crate::support::why(files.copy(&folder.path("first"), &folder.path("second"), true));
    assert_eq!(words, "Too many levels of symbolic links (os error 40)");
    assert_eq!(fs::read(folder.path("outside/file")).unwrap(), b"outside");
}

#[test]
fn never_into_itself() {
    let folder = Folder::new();
    let files = Files::default();
    let tree = folder.directory("tree/below");
    let tree = tree.parent().unwrap();
    folder.link("link", "tree");
    folder.link("to_below", "tree/below");
    for copy in [
        "tree",
        "tree/copy",
        "tree/below/new/deep",
        "link",
        "link/copy",
        "link/new/deep",
        "to_below",
        "to_below/copy",
    ] {
        refused(files.copy(tree, &folder.path(copy), true), ITSELF);
    }
    let source = folder.path("link/../tree");
    refused(files.copy(&source, &folder.path("tree/copy"), true), ITSELF);
    assert_eq!(folder.names("tree"), ["below"]);
    files.copy(tree, &folder.path("tree2"), true).unwrap();
    assert_eq!(
        folder.names("tree2"),
        ["below"],
        "a longer name is another one"
    );
}

#[test]
fn not_deeper_than_the_limit() {
    let folder = Folder::new();
    folder.directory("tree/a/b");
    let limited = |copy_depth| {
        Files::new(Limits {
            copy_depth,
            ..Limits::default()
        })
    };
    limited(3)
        .copy(&folder.path("tree"), &folder.path("copy"), true)
        .unwrap();
    failed(
        limited(2).copy(&folder.path("tree"), &folder.path("other"), true),
        "directory is more than 2 levels deep",
    );
}
