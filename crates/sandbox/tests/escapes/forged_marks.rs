//! A process marks directories like placeholders to mislead the next sandbox.

use std::path::Path;

use outpost_sandbox::Access;

use crate::fixture::{Fixture, text};

const DENIED: &str = "Permission denied";

#[test]
fn pinned_directory_with_forged_mark_cannot_be_renamed() {
    let mut fixture = Fixture::new();
    let secret = fixture.inside("a/b/secret");
    std::fs::create_dir_all(&secret).expect("create directories");
    let key = fixture.file(secret.join("key"));
    let workspace = fixture.inside("");
    let entries = [
        (Access::Read, Path::new("/")),
        (Access::Write, &workspace),
        (Access::Deny, &secret),
    ];
    fixture.plan_paths(&entries);
    fixture
        .script("touch -d @1330992208 a a/b")
        .assert_success();
    fixture.plan_paths(&entries);
    let (from, to) = (fixture.inside("a"), fixture.inside("x"));
    fixture
        .sandboxed(&["rename", text(&from), text(&to)])
        .assert_fails("busy");
    fixture
        .sandboxed(&["read", text(&key)])
        .assert_fails(DENIED);
}

#[test]
fn denied_directory_with_forged_mark_is_hidden() {
    let fixture = Fixture::new();
    let (full, empty) = (fixture.outside("full"), fixture.outside("empty"));
    std::fs::create_dir(&full).expect("create directory");
    std::fs::create_dir(&empty).expect("create directory");
    let key = fixture.file(full.join("key"));
    mark(&full);
    mark(&empty);
    let fixture = fixture.and(Access::Deny, &full).and(Access::Deny, &empty);
    fixture.unsandboxed(&["read", text(&key)]).assert_success();
    fixture
        .sandboxed(&["read", text(&key)])
        .assert_fails(DENIED);
    fixture
        .sandboxed(&["list", text(&empty)])
        .assert_fails(DENIED);
}

#[test]
fn forged_mark_removes_no_grant() {
    let mut fixture = Fixture::new();
    let (directory, workspace) = (fixture.outside(""), fixture.inside(""));
    mark(&workspace);
    let entries = [(Access::Read, Path::new("/")), (Access::Write, &workspace)];
    fixture.plan_paths(&entries);
    fixture
        .sandboxed(&["create", text(&fixture.inside("one"))])
        .assert_success();
    std::fs::remove_file(fixture.inside("one")).expect("remove file");
    mark(&workspace);
    // Below another writable directory, where it could be masked as absent.
    let wider = [
        (Access::Read, Path::new("/")),
        (Access::Write, &directory),
        (Access::Write, &workspace),
    ];
    fixture.plan_paths(&wider);
    fixture
        .sandboxed(&["create", text(&fixture.inside("two"))])
        .assert_success();
    assert!(workspace.exists());
}

/// Marks a directory like a placeholder.
fn mark(directory: &Path) {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(0x4f55_5450);
    let opened = std::fs::File::open(directory).expect("open");
    opened.set_modified(time).expect("set time");
}
