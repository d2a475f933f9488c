//! Another thing in the place of what was planned with, by the time it is mounted.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outpost_sandbox::Access;

use crate::cell::{Cell, text};

/// Two roots to write, one in the other, and a folder beside them.
fn nested() -> (Cell, PathBuf, PathBuf) {
    let mut cell = Cell::new();
    let (sub, beside) = (cell.inside("sub"), cell.outside("beside"));
    std::fs::create_dir(&sub).expect("a folder");
    std::fs::create_dir(&beside).expect("a folder");
    let workspace = cell.inside("");
    cell.follow(&[
        (Access::Read, Path::new("/")),
        (Access::Write, &workspace),
        (Access::Write, &sub),
    ]);
    (cell, sub, beside)
}

/// The same without names to protect, so that nothing but the roots themselves can give it away.
fn bare() -> (Cell, PathBuf, PathBuf) {
    let cell = Cell::new();
    let (sub, beside) = (cell.inside("sub"), cell.outside("beside"));
    std::fs::create_dir(&sub).expect("a folder");
    std::fs::create_dir(&beside).expect("a folder");
    (cell.and(Access::Write, &sub), sub, beside)
}

fn names(folder: &Path) -> usize {
    folder.read_dir().expect("it is there").count()
}

#[test]
fn a_root_that_has_become_a_link_is_not_mounted() {
    for namespaces in [true, false] {
        let (cell, sub, beside) = bare();
        let cell = if namespaces { cell } else { cell.alone() };
        let new = beside.join("new");
        cell.confined(&["create", text(&sub.join("fine"))])
            .succeeds();
        std::fs::rename(&sub, cell.inside("moved")).expect("it moves");
        symlink(&beside, &sub).expect("a link");
        cell.free(&["create", text(&sub.join("free"))]).succeeds();
        for path in [&sub.join("new"), &new] {
            assert!(!cell.ran(&["create", text(path)]), "{}", path.display());
        }
        assert_eq!(names(&beside), 1, "that of the free one");
    }
}

#[test]
fn a_root_that_has_become_another_directory_is_not_mounted() {
    for namespaces in [true, false] {
        let (cell, sub, beside) = nested();
        let cell = if namespaces { cell } else { cell.alone() };
        std::fs::rename(&sub, cell.inside("moved")).expect("it moves");
        std::fs::rename(&beside, &sub).expect("it moves");
        assert!(!cell.ran(&["create", text(&sub.join("new"))]));
        assert_eq!(names(&sub), 0);
    }
}

#[test]
fn no_place_is_held_through_a_link() {
    let (cell, sub, beside) = nested();
    std::fs::rename(&sub, cell.inside("moved")).expect("it moves");
    symlink(&beside, &sub).expect("a link");
    let refused = cell.sandbox().confine(&cell.plan, cell.program());
    // Whether it was refused or fails later, what is there meanwhile is all that counts.
    assert_eq!(names(&beside), 0);
    drop(refused);
    assert_eq!(names(&beside), 0);
}

#[test]
fn whoever_keeps_swapping_gets_nowhere() {
    let (cell, there, beside) = bare();
    let moved = cell.inside("moved");
    let target = beside.clone();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let swapping = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            let _ = std::fs::rename(&there, &moved);
            let _ = symlink(&target, &there);
            let _ = std::fs::remove_file(&there);
            let _ = std::fs::rename(&moved, &there);
        }
    });
    let by_both_names = format!(
        "touch sub/new; touch {0}/new; touch {0}/.git/new",
        text(&beside)
    );
    for _ in 0..20 {
        cell.try_script(&by_both_names);
    }
    stop.store(true, Ordering::Relaxed);
    swapping.join().expect("it ends");
    assert_eq!(names(&beside), 0);
}
