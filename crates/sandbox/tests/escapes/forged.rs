//! What a process leaves behind for the next one: a mark that only the sandbox's own directories
//! should have.

use std::path::Path;

use outpost_sandbox::Access;

use crate::cell::{Cell, mark, text};

const DENIED: &str = "Permission denied";

#[test]
fn a_pinned_directory_with_a_forged_mark_stays_where_it_is() {
    let mut cell = Cell::new();
    let secret = cell.inside("a/b/secret");
    std::fs::create_dir_all(&secret).expect("folders");
    let key = cell.file(secret.join("key"));
    let workspace = cell.inside("");
    let entries = [
        (Access::Read, Path::new("/")),
        (Access::Write, &workspace),
        (Access::Deny, &secret),
    ];
    cell.follow(&entries);
    cell.script("touch -d @1330992208 a a/b").succeeds();
    cell.follow(&entries);
    let (from, to) = (cell.inside("a"), cell.inside("x"));
    cell.confined(&["rename", text(&from), text(&to)])
        .fails("busy");
    cell.confined(&["read", text(&key)]).fails(DENIED);
}

#[test]
fn what_is_denied_is_hidden_whatever_its_time() {
    let cell = Cell::new();
    let (full, empty) = (cell.outside("full"), cell.outside("empty"));
    std::fs::create_dir(&full).expect("a folder");
    std::fs::create_dir(&empty).expect("a folder");
    let key = cell.file(full.join("key"));
    mark(&full);
    mark(&empty);
    let cell = cell.and(Access::Deny, &full).and(Access::Deny, &empty);
    cell.free(&["read", text(&key)]).succeeds();
    cell.confined(&["read", text(&key)]).fails(DENIED);
    cell.confined(&["list", text(&empty)]).fails(DENIED);
}

#[test]
fn a_forged_mark_takes_no_grant_away() {
    let mut cell = Cell::new();
    let (folder, workspace) = (cell.outside(""), cell.inside(""));
    mark(&workspace);
    let entries = [(Access::Read, Path::new("/")), (Access::Write, &workspace)];
    cell.follow(&entries);
    cell.confined(&["create", text(&cell.inside("one"))])
        .succeeds();
    std::fs::remove_file(cell.inside("one")).expect("it was made");
    mark(&workspace);
    // In something else that may be written, where it could be held as if it were absent.
    let wider = [
        (Access::Read, Path::new("/")),
        (Access::Write, &folder),
        (Access::Write, &workspace),
    ];
    cell.follow(&wider);
    cell.confined(&["create", text(&cell.inside("two"))])
        .succeeds();
    assert!(workspace.exists());
}
