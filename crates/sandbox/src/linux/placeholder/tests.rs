use std::path::Path;

use rustix::fs::Mode;

use super::directory::{OPEN_FLAGS, is_marked, mark};
use super::set::Placeholder;
use super::*;

#[test]
fn placeholder_exists_until_last_user_releases_it() {
    let directory = tempfile::tempdir().expect("create directory");
    let path = directory.path().join(".git");
    let (own, other) = (Placeholders::default(), Placeholders::default());
    let first = own.acquire(std::slice::from_ref(&path)).expect("acquire");
    let second = own.acquire(std::slice::from_ref(&path)).expect("acquire");
    // Like another server.
    let third = other.acquire(std::slice::from_ref(&path)).expect("acquire");
    assert!(is_placeholder(&path));
    drop(first);
    assert!(path.exists());
    drop(second);
    assert!(path.exists());
    drop(third);
    assert!(!path.exists());
}

/// As on a file system that does not answer.
#[test]
fn hanging_change_delays_no_other_path() {
    let directory = tempfile::tempdir().expect("create directory");
    let at = |name: &str| directory.path().join(name);
    for name in ["hung", "other"] {
        std::fs::create_dir(at(name)).expect("create directory");
    }
    let (hung, other) = (at("hung/.git"), at("other/.git"));
    let all = Placeholders::default();
    all.while_locked(&at("hung"), || {
        all.while_locked(&hung, || {
            let set = all.acquire(std::slice::from_ref(&other)).expect("acquire");
            assert_eq!(all.paths(), std::slice::from_ref(&other));
            drop(set);
            assert!(!other.exists());
            assert!(all.paths().is_empty());
        });
    });
    // Another thread waits for the path.
    let acquired = all.while_locked(&hung, || {
        let (all, hung) = (all.clone(), hung.clone());
        let acquiring = std::thread::spawn(move || all.acquire(&[hung]));
        assert!(!at("hung/.git").exists());
        acquiring
    });
    let acquired = acquired.join().expect("no panic").expect("acquire");
    assert!(hung.exists());
    drop(acquired);
    assert!(!hung.exists());
    assert!(all.table_is_empty());
}

#[test]
fn concurrent_sets_leave_nothing() {
    let directory = tempfile::tempdir().expect("create directory");
    let outer = directory.path().join(".git");
    let all = Placeholders::default();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (all, outer) = (&all, &outer);
            scope.spawn(move || {
                for _ in 0..200 {
                    let inner = outer.join(".aws");
                    let path = if thread % 2 == 0 { outer } else { &inner };
                    // The outer one may not exist, or be removed meanwhile.
                    match all.acquire(std::slice::from_ref(path)) {
                        Ok(set) => {
                            assert!(path.exists());
                            drop(set);
                        }
                        Err(error) => assert!(error.is_transient(), "{error}"),
                    }
                }
            });
        }
    });
    assert!(all.table_is_empty());
    assert!(!outer.exists());
}

#[test]
fn path_is_listed_until_the_last_set_is_dropped() {
    let directory = tempfile::tempdir().expect("create directory");
    let (a, b) = (directory.path().join("a"), directory.path().join("b"));
    let all = Placeholders::default();
    let first = all.acquire(&[a.clone(), b]).expect("acquire");
    let second = all.acquire(std::slice::from_ref(&a)).expect("acquire");
    assert_eq!(all.possible_paths().len(), 2);
    drop(first);
    assert_eq!(all.possible_paths(), std::slice::from_ref(&a));
    drop(second);
    assert!(all.possible_paths().is_empty());
    // A failed acquisition lists nothing either.
    std::fs::write(&a, "x").expect("write file");
    all.acquire(&[a]).expect_err("a file is in the way");
    assert!(all.possible_paths().is_empty());
}

#[test]
fn directory_that_was_used_is_not_removed() {
    let directory = tempfile::tempdir().expect("create directory");
    let path = directory.path().join(".git");
    let set = Placeholders::default().acquire(std::slice::from_ref(&path));
    std::fs::write(path.join("HEAD"), "x").expect("write file");
    std::fs::remove_file(path.join("HEAD")).expect("remove file");
    drop(set);
    assert!(path.exists(), "it counts as a user's directory");
}

#[test]
fn leftover_of_killed_server_is_reused_and_removed() {
    let directory = tempfile::tempdir().expect("create directory");
    let path = directory.path().join(".git");
    drop(Placeholder::create(&path).expect("create"));
    assert!(path.exists(), "like after a kill");
    let set = Placeholders::default().acquire(std::slice::from_ref(&path));
    drop(set.expect("acquire"));
    assert!(!path.exists());
}

#[test]
fn existing_directory_or_file_is_rejected() {
    let directory = tempfile::tempdir().expect("create directory");
    let path = directory.path().join(".git");
    std::fs::create_dir(&path).expect("create directory");
    let rejected = Placeholders::default().acquire(std::slice::from_ref(&path));
    assert!(matches!(rejected, Err(PlaceholderError::Appeared(_))));
    assert!(path.exists());
    let file = directory.path().join("file");
    std::fs::write(&file, "").expect("write file");
    let rejected = Placeholders::default().acquire(std::slice::from_ref(&file));
    assert!(matches!(rejected, Err(PlaceholderError::Appeared(_))));
}

#[test]
fn failed_acquire_leaves_nothing() {
    let directory = tempfile::tempdir().expect("create directory");
    let paths = [directory.path().join("a"), directory.path().join("b/c")];
    let rejected = Placeholders::default().acquire(&paths);
    assert!(matches!(rejected, Err(PlaceholderError::Os { .. })));
    assert!(!paths[0].exists());
}

#[test]
fn marked_directory_with_content_is_no_placeholder() {
    let directory = tempfile::tempdir().expect("create directory");
    let path = directory.path().join("a");
    std::fs::create_dir(&path).expect("create directory");
    std::fs::write(path.join("file"), "").expect("write file");
    let opened = rustix::fs::open(&path, OPEN_FLAGS, Mode::empty()).expect("open");
    mark(&opened).expect("mark");
    assert!(!is_placeholder(&path));
    let rejected = Placeholders::default().acquire(std::slice::from_ref(&path));
    assert!(matches!(rejected, Err(PlaceholderError::Appeared(_))));
    if rustix::process::geteuid().is_root() {
        let foreign = directory.path().join("b");
        drop(Placeholder::create(&foreign).expect("create"));
        assert!(is_placeholder(&foreign));
        std::os::unix::fs::chown(&foreign, Some(65534), None).expect("chown");
        assert!(!is_placeholder(&foreign), "belongs to another user");
    }
}

#[test]
fn externally_removed_placeholder_is_created_again() {
    let directory = tempfile::tempdir().expect("create directory");
    let path = directory.path().join(".git");
    let all = Placeholders::default();
    let first = all.acquire(std::slice::from_ref(&path)).expect("acquire");
    std::fs::remove_dir(&path).expect("remove directory");
    let second = all.acquire(std::slice::from_ref(&path)).expect("acquire");
    drop(first);
    assert!(path.exists(), "belongs to the second set");
    let third = all.acquire(std::slice::from_ref(&path)).expect("acquire");
    drop(second);
    assert!(path.exists());
    drop(third);
    assert!(!path.exists());
    assert!(all.paths().is_empty());
}

#[test]
fn placeholder_is_removed_from_moved_parent() {
    let directory = tempfile::tempdir().expect("create directory");
    let (here, moved) = (
        directory.path().join("here"),
        directory.path().join("moved"),
    );
    let beside = directory.path().join("beside");
    std::fs::create_dir(&here).expect("create directory");
    std::fs::create_dir_all(beside.join(".git")).expect("create directories");
    let set = Placeholders::default().acquire(&[here.join(".git")]);
    std::fs::rename(&here, &moved).expect("rename");
    std::os::unix::fs::symlink(&beside, &here).expect("create link");
    assert!(moved.join(".git").exists());
    drop(set.expect("acquire"));
    assert!(!moved.join(".git").exists());
    assert!(beside.join(".git").exists());
    let rejected = Placeholders::default().acquire(&[here.join(".aws")]);
    assert!(matches!(rejected, Err(PlaceholderError::Os { .. })));
    assert!(!beside.join(".aws").exists());
}

#[test]
fn inner_placeholders_are_removed_before_the_outer() {
    let directory = tempfile::tempdir().expect("create directory");
    let outer = directory.path().join(".git");
    let inner = [outer.join(".aws"), outer.join(".git")];
    let all = Placeholders::default();
    for outer_ends_first in [true, false] {
        let first = all.acquire(std::slice::from_ref(&outer)).expect("acquire");
        let second = all.acquire(&inner).expect("acquire");
        // Still recognized and shared.
        assert!(is_placeholder(&outer));
        let third = all.acquire(std::slice::from_ref(&outer)).expect("acquire");
        let (one, other) = if outer_ends_first {
            (first, second)
        } else {
            (second, first)
        };
        drop(one);
        drop(other);
        assert!(is_placeholder(&outer), "belongs to the third set");
        assert!(!inner[0].exists() && !inner[1].exists());
        drop(third);
        assert!(!outer.exists());
        assert!(all.paths().is_empty());
    }
    // A directory with a file stays, without the mark.
    let first = all.acquire(std::slice::from_ref(&outer)).expect("acquire");
    let second = all.acquire(&inner).expect("acquire");
    std::fs::write(outer.join("HEAD"), "ref").expect("write file");
    drop((first, second));
    assert!(outer.join("HEAD").exists());
    assert!(!is_marked_at(&outer));
}

#[test]
fn marked_user_directory_is_not_removed_with_its_placeholder() {
    let directory = tempfile::tempdir().expect("create directory");
    let workspace = directory.path().join("workspace");
    std::fs::create_dir(&workspace).expect("create directory");
    let opened = rustix::fs::open(&workspace, OPEN_FLAGS, Mode::empty()).expect("open");
    mark(&opened).expect("mark");
    drop(Placeholders::default().acquire(&[workspace.join(".git")]));
    assert!(workspace.exists());
}

fn is_marked_at(path: &Path) -> bool {
    let opened = rustix::fs::open(path, OPEN_FLAGS, Mode::empty()).expect("open");
    is_marked(&opened) == Ok(true)
}

#[test]
fn no_temporary_directory_is_left() {
    let directory = tempfile::tempdir().expect("create directory");
    let path = directory.path().join(".git");
    let names = || directory.path().read_dir().expect("read directory").count();
    let set = Placeholders::default().acquire(std::slice::from_ref(&path));
    assert_eq!(names(), 1);
    drop(set.expect("acquire"));
    assert_eq!(names(), 0);
}
