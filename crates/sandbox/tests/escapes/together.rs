//! Several confined processes of one server, where one could open the walls of another.

use std::path::Path;
use std::process::{Child, Stdio};

use outpost_sandbox::{Access, Hold};

use crate::cell::{Cell, text};

/// One that runs until its input ends.
fn running(cell: &Cell, script: &str) -> (Child, Hold) {
    let argv = ["/bin/sh", "-c", script].map(AsRef::as_ref);
    let (mut command, hold) = cell.command(&argv);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    (command.spawn().expect("it starts"), hold)
}

/// What it has written in the end, once it was told to go on.
fn finish(child: Child) -> String {
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn what_one_holds_absent_another_can_not_remove() {
    let mut cell = Cell::new();
    let (folder, workspace) = (cell.outside(""), cell.inside(""));
    let root = Path::new("/");
    cell.follow(&[(Access::Read, root), (Access::Write, &workspace)]);
    let script = "cat; mkdir .git 2>&1 || mkdir -p .git/hooks 2>&1 || echo kept";
    let (longer, hold) = running(&cell, script);
    let git = cell.inside(".git");
    assert!(git.exists());
    cell.follow(&[(Access::Read, root), (Access::Write, &folder)]);
    cell.script(&format!("rmdir {}", text(&git)))
        .complains("busy");
    let (from, to) = (git.clone(), cell.inside("x"));
    cell.confined(&["rename", text(&from), text(&to)])
        .fails("busy");
    let said = finish(longer);
    assert!(said.ends_with("kept\n"), "{said}");
    drop(hold);
    assert!(!git.exists());
}

#[test]
fn a_place_that_somebody_removed_stops_nobody() {
    let mut cell = Cell::new();
    let workspace = cell.inside("");
    let entries = [(Access::Read, Path::new("/")), (Access::Write, &workspace)];
    cell.follow(&entries);
    let (longer, hold) = running(&cell, "cat");
    let git = cell.inside(".git");
    std::fs::remove_dir(&git).expect("somebody outside removes it");
    cell.follow(&entries);
    cell.confined(&["create", text(&cell.inside("file"))])
        .succeeds();
    cell.confined(&["make-directory", text(&git)]).fails("");
    finish(longer);
    drop(hold);
    assert!(!git.exists());
}
