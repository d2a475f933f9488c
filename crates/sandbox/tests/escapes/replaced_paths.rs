//! Paths that are replaced between planning and mounting.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outpost_sandbox::Access;

use crate::fixture::{Fixture, text};
use crate::landlock::levels;

/// Returns a plan with two nested writable roots, and a directory beside them.
fn nested() -> (Fixture, PathBuf, PathBuf) {
    let mut fixture = Fixture::new();
    let (sub, beside) = (fixture.inside("sub"), fixture.outside("beside"));
    std::fs::create_dir(&sub).expect("create directory");
    std::fs::create_dir(&beside).expect("create directory");
    let workspace = fixture.inside("");
    fixture.plan_paths(&[
        (Access::Read, Path::new("/")),
        (Access::Write, &workspace),
        (Access::Write, &sub),
    ]);
    (fixture, sub, beside)
}

/// Returns the same without protected names, so that only the identity of the roots can be checked.
fn without_protected_names() -> (Fixture, PathBuf, PathBuf) {
    let fixture = Fixture::new();
    let (sub, beside) = (fixture.inside("sub"), fixture.outside("beside"));
    std::fs::create_dir(&sub).expect("create directory");
    std::fs::create_dir(&beside).expect("create directory");
    (fixture.and(Access::Write, &sub), sub, beside)
}

/// Returns the number of names in a directory.
fn count(directory: &Path) -> usize {
    directory.read_dir().expect("read metadata").count()
}

#[test]
fn root_replaced_by_a_link_is_not_mounted() {
    for level in levels() {
        let (fixture, sub, beside) = without_protected_names();
        let fixture = fixture.at(level);
        let new = beside.join("new");
        fixture
            .sandboxed(&["create", text(&sub.join("fine"))])
            .assert_success();
        std::fs::rename(&sub, fixture.inside("moved")).expect("rename");
        symlink(&beside, &sub).expect("create link");
        fixture
            .unsandboxed(&["create", text(&sub.join("free"))])
            .assert_success();
        for path in [&sub.join("new"), &new] {
            assert!(
                !fixture.succeeds(&["create", text(path)]),
                "{}",
                path.display()
            );
        }
        assert_eq!(count(&beside), 1, "the unsandboxed one");
    }
}

#[test]
fn root_replaced_by_another_directory_is_not_mounted() {
    for level in levels() {
        let (fixture, sub, beside) = nested();
        let fixture = fixture.at(level);
        std::fs::rename(&sub, fixture.inside("moved")).expect("rename");
        std::fs::rename(&beside, &sub).expect("rename");
        assert!(!fixture.succeeds(&["create", text(&sub.join("new"))]));
        assert_eq!(count(&sub), 0);
    }
}

#[test]
fn placeholders_are_not_created_through_a_link() {
    let (fixture, sub, beside) = nested();
    std::fs::rename(&sub, fixture.inside("moved")).expect("rename");
    symlink(&beside, &sub).expect("create link");
    let rejected = fixture.sandbox().prepare(&fixture.plan, fixture.program());
    // It may fail later too; nothing may be created in either case.
    assert_eq!(count(&beside), 0);
    drop(rejected);
    assert_eq!(count(&beside), 0);
}

#[test]
fn continuous_replacement_does_not_escape() {
    let (fixture, root, beside) = without_protected_names();
    let moved = fixture.inside("moved");
    let target = beside.clone();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let replacing = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            let _ = std::fs::rename(&root, &moved);
            let _ = symlink(&target, &root);
            let _ = std::fs::remove_file(&root);
            let _ = std::fs::rename(&moved, &root);
        }
    });
    let script = format!(
        "touch sub/new; touch {0}/new; touch {0}/.git/new",
        text(&beside)
    );
    for _ in 0..20 {
        fixture.try_script(&script);
    }
    stop.store(true, Ordering::Relaxed);
    replacing.join().expect("wait");
    assert_eq!(count(&beside), 0);
}
