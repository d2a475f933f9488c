//! Operations while a directory is swapped with a symbolic link all the time.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use outpost_files::{Files, FilesError};
use outpost_types::Symlinks;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::support::{FilesExt as _, Folder, Remove, with_each_symlink_check};

/// The number of times each operation is tried.
const ROUNDS: usize = 2000;
/// Bounds the wait for the other thread.
const DEADLINE: Duration = Duration::from_secs(20);

/// The minimum number of swaps for a valid run. With fewer, nothing raced.
const MIN_SWAPS: usize = 10;

/// Runs `operations` while `inside/dir` and a link to `outside` are exchanged in a loop. Repeats them
/// until there were enough swaps: on a busy machine they may end before the other thread has run.
fn while_swapped(folder: &Folder, operations: impl Fn(&Path)) {
    let real = folder.directory("inside/dir");
    let link = folder.link("inside/other", folder.path("outside"));
    let (done, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &real, CWD, &link, RenameFlags::EXCHANGE).expect("a swap");
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let deadline = Instant::now() + DEADLINE;
        loop {
            operations(&real);
            if swaps.load(Ordering::Relaxed) > MIN_SWAPS {
                break;
            }
            assert!(Instant::now() < deadline, "there was no race");
        }
    });
}

/// Ends the swapping when dropped, also on a panic.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn assert_outside_unchanged(folder: &Folder) {
    assert_eq!(folder.names("outside"), ["deep", "file"]);
    assert_eq!(folder.names("outside/deep"), ["file"]);
    assert_eq!(fs::read(folder.path("outside/file")).unwrap(), b"outside");
}

fn swap_folder() -> Folder {
    let folder = Folder::new();
    folder.file("outside/file", "outside");
    folder.file("outside/deep/file", "outside");
    folder.file("inside/dir/file", "inside");
    folder.file("inside/dir/deep/file", "inside");
    folder
}

/// The value of a success; none if the path was rejected for a symbolic link.
fn unless_link<T>(result: Result<T, FilesError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(FilesError::SymbolicLink) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn reads_never_follow_a_swapped_link() {
    for files in with_each_symlink_check() {
        let folder = swap_folder();
        while_swapped(&folder, |dir| {
            let (mut read, mut round) = (0, 0);
            let deadline = Instant::now() + DEADLINE;
            // Further rounds if the swapping thread was never scheduled in time.
            while round < ROUNDS || (read == 0 && Instant::now() < deadline) {
                round += 1;
                if let Some(bytes) = unless_link(files.read(&dir.join("file"), Symlinks::Reject)) {
                    assert_eq!(bytes, b"inside");
                    read += 1;
                }
                if let Some(found) =
                    unless_link(files.metadata(&dir.join("file"), Symlinks::Reject))
                {
                    assert_eq!(found.size, 6);
                }
            }
            assert!(read > 0, "the directory was never at its path");
        });
        assert_outside_unchanged(&folder);
    }
}

#[test]
fn writes_never_follow_a_swapped_link() {
    for files in with_each_symlink_check() {
        let folder = swap_folder();
        while_swapped(&folder, |dir| {
            for round in 0..ROUNDS {
                unless_link(files.write(&dir.join("file"), b"inside", Symlinks::Reject));
                unless_link(files.write(
                    &dir.join(format!("new{}", round % 10)),
                    b"x",
                    Symlinks::Reject,
                ));
                let created = dir.join(format!("made{}/below", round % 10));
                unless_link(files.create_directory(&created, true, Symlinks::Reject));
            }
        });
        assert_outside_unchanged(&folder);
    }
}

fn remove_while_swapped(files: &Files, symlinks: Symlinks) {
    let folder = swap_folder();
    let options = Remove {
        recursive: true,
        force: true,
        symlinks,
    };
    while_swapped(&folder, |dir| {
        for _ in 0..ROUNDS / 10 {
            // Create the content again, inside in either position.
            for position in ["inside/dir", "inside/other"] {
                let real = folder.path(position);
                let _ = files.create_directory(&real.join("deep/er"), true, Symlinks::Reject);
                let _ = files.write(&real.join("deep/er/file"), b"inside", Symlinks::Reject);
            }
            unless_link(files.remove(&dir.join("deep"), options));
        }
    });
    assert_outside_unchanged(&folder);
}

#[test]
fn removal_never_follows_a_swapped_link() {
    for files in with_each_symlink_check() {
        remove_while_swapped(&files, Symlinks::Reject);
    }
}

#[test]
fn removal_survives_directories_becoming_links() {
    let files = Files::default();
    let options = Remove {
        recursive: true,
        force: true,
        symlinks: Symlinks::Follow,
    };
    for _ in 0..30 {
        let folder = swap_folder();
        for number in 0..20 {
            folder.file(&format!("inside/dir/many{number}/deep/file"), "inside");
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let link = folder.link("swap", folder.path("outside"));
                while !done.load(Ordering::Relaxed) {
                    for number in 0..20 {
                        let directory = folder.path(&format!("inside/dir/many{number}/deep"));
                        // Fails once the directory is removed.
                        let _ = renameat_with(CWD, &directory, CWD, &link, RenameFlags::EXCHANGE);
                    }
                }
            });
            // It may fail early because a directory was swapped meanwhile.
            let _ = files.remove(&folder.path("inside"), options);
            done.store(true, Ordering::Relaxed);
        });
        assert_outside_unchanged(&folder);
    }
}
