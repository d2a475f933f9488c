//! Copies of files, links and trees.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use outpost_files::{Files, Limits};

use crate::support::{FilesExt as _, Folder, failed, missing, rejected};

const ITSELF: &str = "fs/copy cannot copy a directory to itself or one of its descendants";

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn copy_keeps_permissions_but_not_set_user_id() {
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
    assert_eq!(
        fs::read(&copy).unwrap(),
        b"other",
        "an existing file is overwritten"
    );
    missing(files.copy(&folder.path("no"), &copy, false));
    missing(files.copy(&source, &folder.path("no/no"), false));
    failed(
        files.copy(&source, folder.root(), false),
        "Is a directory (os error 21)",
    );
}

#[test]
fn copy_onto_itself_changes_nothing() {
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
fn symlink_is_copied_as_symlink() {
    let folder = Folder::new();
    let files = Files::default();
    let link = folder.link("l", "no/where");
    let copy = folder.path("m");
    files.copy(&link, &copy, false).unwrap();
    assert_eq!(fs::read_link(&copy).unwrap(), Path::new("no/where"));
    failed(files.copy(&link, &copy, true), "File exists (os error 17)");
}

#[test]
fn tree_is_copied_with_modes_and_links() {
    let folder = Folder::new();
    let files = Files::default();
    folder.file("tree/a/b/file", "hello");
    set_mode(&folder.file("tree/script", "x"), 0o755);
    folder.link("tree/a/link", "../script");
    folder.fifo("tree/a/fifo");
    set_mode(&folder.path("tree/a/b"), 0o555);
    let source = folder.path("tree");
    rejected(
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
    // Otherwise only root could remove the temporary directory.
    set_mode(&folder.path("tree/a/b"), 0o755);
    set_mode(&copy.join("a/b"), 0o755);
}

#[test]
fn tree_is_merged_into_existing_directory() {
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
    let (_, message) =
        crate::support::failure(files.copy(&folder.path("first"), &folder.path("second"), true));
    assert_eq!(message, "Too many levels of symbolic links (os error 40)");
    assert_eq!(fs::read(folder.path("outside/file")).unwrap(), b"outside");
}

#[test]
fn directory_is_not_copied_into_itself() {
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
        rejected(files.copy(tree, &folder.path(copy), true), ITSELF);
    }
    folder.link("up", ".");
    let source = folder.path("up/tree");
    rejected(files.copy(&source, &folder.path("tree/copy"), true), ITSELF);
    assert_eq!(folder.names("tree"), ["below"]);
    files.copy(tree, &folder.path("tree2"), true).unwrap();
    assert_eq!(
        folder.names("tree2"),
        ["below"],
        "a name with the same prefix is another directory"
    );
}

#[test]
fn copy_depth_is_limited() {
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
