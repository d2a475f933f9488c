//! Somebody swaps a directory for a link to elsewhere, all the time.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use outpost_files::{Files, FilesError, Links, Remove};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::support::{Folder, by_all_means};

/// How often each operation is tried.
const ROUNDS: usize = 2000;

/// Runs `hammer` while `inside/dir` and a link to `outside` change places as fast as they can.
fn while_swapped(folder: &Folder, hammer: impl FnOnce(&Path)) {
    let real = folder.directory("inside/dir");
    let link = folder.link("inside/other", folder.path("outside"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let finished = Finished(&done);
        let swapping = scope.spawn(|| {
            let mut swaps = 0_usize;
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &real, CWD, &link, RenameFlags::EXCHANGE).expect("a swap");
                swaps += 1;
            }
            swaps
        });
        hammer(&real);
        drop(finished);
        assert!(swapping.join().expect("no panic") > 10, "there was no race");
    });
}

/// However the hammering ends, the swapping ends with it.
struct Finished<'a>(&'a AtomicBool);

impl Drop for Finished<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn outside_is_as_it_was(folder: &Folder) {
    assert_eq!(folder.names("outside"), ["deep", "file"]);
    assert_eq!(folder.names("outside/deep"), ["file"]);
    assert_eq!(fs::read(folder.path("outside/file")).unwrap(), b"outside");
}

fn prepared() -> Folder {
    let folder = Folder::new();
    folder.file("outside/file", "outside");
    folder.file("outside/deep/file", "outside");
    folder.file("inside/dir/file", "inside");
    folder.file("inside/dir/deep/file", "inside");
    folder
}

/// Counts what went well, and lets only those failures pass that a race may cause.
fn fine<T>(result: Result<T, FilesError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(FilesError::SymbolicLink) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn reading_and_looking_never_leave() {
    for files in by_all_means() {
        let folder = prepared();
        while_swapped(&folder, |dir| {
            let mut read = 0;
            for _ in 0..ROUNDS {
                if let Some(bytes) = fine(files.read(&dir.join("file"), Links::Refuse)) {
                    assert_eq!(bytes, b"inside");
                    read += 1;
                }
                if let Some(found) = fine(files.metadata(&dir.join("file"), Links::Refuse)) {
                    assert_eq!(found.size, 6);
                }
            }
            assert!(read > 0, "it was never there");
        });
        outside_is_as_it_was(&folder);
    }
}

#[test]
fn writing_and_making_never_leave() {
    for files in by_all_means() {
        let folder = prepared();
        while_swapped(&folder, |dir| {
            for round in 0..ROUNDS {
                fine(files.write(&dir.join("file"), b"inside", Links::Refuse));
                fine(files.write(&dir.join(format!("new{}", round % 10)), b"x", Links::Refuse));
                let made = dir.join(format!("made{}/below", round % 10));
                fine(files.create_directory(&made, true, Links::Refuse));
            }
        });
        outside_is_as_it_was(&folder);
    }
}

fn removing(files: &Files, links: Links) {
    let folder = prepared();
    let how = Remove {
        recursive: true,
        force: true,
        links,
    };
    while_swapped(&folder, |dir| {
        for _ in 0..ROUNDS / 10 {
            // What is removed is made again where it certainly is inside.
            for place in ["inside/dir", "inside/other"] {
                let real = folder.path(place);
                let _ = files.create_directory(&real.join("deep/er"), true, Links::Refuse);
                let _ = files.write(&real.join("deep/er/file"), b"inside", Links::Refuse);
            }
            fine(files.remove(&dir.join("deep"), how));
        }
    });
    outside_is_as_it_was(&folder);
}

#[test]
fn removing_a_tree_never_leaves() {
    for files in by_all_means() {
        removing(&files, Links::Refuse);
    }
}

#[test]
fn a_tree_whose_directories_become_links_while_it_is_removed() {
    let files = Files::default();
    let how = Remove {
        recursive: true,
        force: true,
        links: Links::Follow,
    };
    for _ in 0..30 {
        let folder = prepared();
        for number in 0..20 {
            folder.file(&format!("inside/dir/many{number}/deep/file"), "inside");
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let link = folder.link("swap", folder.path("outside"));
                while !done.load(Ordering::Relaxed) {
                    for number in 0..20 {
                        let victim = folder.path(&format!("inside/dir/many{number}/deep"));
                        // It is gone once it has been removed.
                        let _ = renameat_with(CWD, &victim, CWD, &link, RenameFlags::EXCHANGE);
                    }
                }
            });
            // A directory that is swapped out from under it may end it early; that is no harm.
            let _ = files.remove(&folder.path("inside"), how);
            done.store(true, Ordering::Relaxed);
        });
        outside_is_as_it_was(&folder);
    }
}
