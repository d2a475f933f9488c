//! A process moves or hides files that match a denied pattern, so that the next process can read them.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;

use outpost_sandbox::Access;
use outpost_sandbox::policy::{Entry, FileSystem};
use rustix::fs::{Mode, OFlags};

use crate::fixture::Fixture;

/// Returns a policy that denies `**/*.pem` in a writable workspace.
fn denied_keys(fixture: &Fixture, depth: Option<u64>) -> FileSystem {
    let mut files = FileSystem::restricted(vec![
        Entry::path("/", Access::Read),
        Entry::path(fixture.inside(""), Access::Write),
        Entry::pattern("**/*.pem", Access::Deny),
    ]);
    if let FileSystem::Restricted(files) = &mut files {
        files.glob_scan_max_depth = depth;
    }
    files
}

fn with_key() -> Fixture {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.inside("d")).expect("create directory");
    std::fs::create_dir_all(fixture.inside("deep/er")).expect("create directories");
    fixture.file(fixture.inside("d/key.pem"));
    fixture
}

/// Prints every key in the workspace. Paths need not be short.
const PRINT_KEYS: &str = "find . -name '*.pem' -execdir cat {} ';'";

#[test]
fn directory_with_a_match_cannot_be_moved_below_the_scan_depth() {
    let mut fixture = with_key();
    let files = denied_keys(&fixture, Some(2));
    fixture.plan_files(files.clone()).expect("plan");
    let moved = fixture.script("mv d deep/er/d");
    moved.assert_stderr("busy");
    fixture.plan_files(files).expect("plan");
    assert_eq!(fixture.script(PRINT_KEYS).stdout(), "");
    // Without the pattern it can be moved and read.
    let workspace = fixture.inside("");
    fixture.plan_paths(&[(Access::Read, Path::new("/")), (Access::Write, &workspace)]);
    let moved = fixture.script(&format!("mv d deep/er/d; {PRINT_KEYS}"));
    assert_eq!(moved.stdout(), "original");
}

#[test]
fn match_is_hidden_while_another_process_renames_its_directory() {
    let mut fixture = with_key();
    let files = denied_keys(&fixture, None);
    fixture.plan_files(files.clone()).expect("plan");
    let script = "while [ ! -e stop ]; do mv d e; mv e d; done";
    let (mut renaming, resources) = fixture.command(&["/bin/sh", "-c", script].map(AsRef::as_ref));
    let mut renaming = renaming.stderr(Stdio::null()).spawn().expect("spawn");
    let (mut started, mut read) = (0, 0);
    for _ in 0..40 {
        // Both fail if a path is missing at the wrong moment.
        if fixture.plan_files(files.clone()).is_err() {
            continue;
        }
        if let Some(outcome) = fixture.try_script("cat d/key.pem e/key.pem; echo end") {
            started += usize::from(outcome.stdout() == "end\n");
            read += usize::from(outcome.stdout().contains("original"));
        }
    }
    std::fs::write(fixture.inside("stop"), "").expect("write file");
    renaming.wait().expect("wait");
    drop(resources);
    assert_eq!(read, 0, "of {started}");
    assert!(started > 20, "{started} of 40");
}

/// Creates nested directories whose path is longer than `PATH_MAX`, and a key in the last one.
fn nest(fixture: &Fixture) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open =
        |directory: &OwnedFd, name: &str| rustix::fs::openat(directory, name, flags, Mode::empty());
    let mut directory = rustix::fs::open(fixture.inside(""), flags, Mode::empty()).expect("open");
    let name = "n".repeat(250);
    for _ in 0..18 {
        rustix::fs::mkdirat(&directory, &name, Mode::RWXU).expect("create directory");
        directory = open(&directory, &name).expect("open");
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&directory, "key.pem", flags, Mode::RWXU).expect("create");
    rustix::io::write(file, b"original").expect("write");
}

#[test]
fn directories_with_long_paths_fail_no_start_and_hide_their_matches() {
    let mut fixture = Fixture::new();
    nest(&fixture);
    let workspace = fixture.inside("");
    fixture.plan_paths(&[(Access::Read, Path::new("/")), (Access::Write, &workspace)]);
    assert_eq!(fixture.script(PRINT_KEYS).stdout(), "original");
    let files = denied_keys(&fixture, None);
    fixture.plan_files(files).expect("plan");
    let found = fixture.script(&format!("{PRINT_KEYS}; echo end"));
    assert_eq!(found.stdout(), "end\n");
}
