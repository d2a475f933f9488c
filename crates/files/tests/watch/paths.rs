//! Watches of files, of directories with their entries, and of paths that do not exist yet.

use std::fs;
use std::io::Read as _;

use outpost_files::{WatchError, WatchLimits};

use crate::support::Fixture;

#[test]
fn changes_of_a_file_are_reported_and_reads_are_not() {
    let mut at = Fixture::new();
    at.write("f");
    at.write("sibling");
    let watch = at.watch("f");
    at.write("f");
    at.assert_changes(watch, &["f"]);
    at.chmod("f", 0o600);
    at.assert_changes(watch, &["f"]);
    let mut text = String::new();
    let mut file = fs::File::open(at.path("f")).unwrap();
    file.read_to_string(&mut text).unwrap();
    at.write("sibling");
    at.assert_changes(watch, &[]);
}

#[test]
fn file_survives_replace_remove_and_creation() {
    let mut at = Fixture::new();
    at.write("f");
    let watch = at.watch("f");
    for _ in 0..3 {
        at.write("new");
        at.rename("new", "f");
        at.assert_changes(watch, &["f"]);
        at.write("f");
        at.assert_changes(watch, &["f"]);
        at.remove("f");
        at.assert_changes(watch, &["f"]);
        at.write("f");
        at.assert_changes(watch, &["f"]);
        at.chmod("f", 0o640);
        at.assert_changes(watch, &["f"]);
        at.chmod("f", 0o644);
        at.assert_changes(watch, &["f"]);
    }
}

#[test]
fn file_is_followed_when_its_directories_are_replaced() {
    let mut at = Fixture::new();
    at.mkdir("a/b");
    at.write("a/b/f");
    let watch = at.watch("a/b/f");
    at.rename("a", "c");
    at.assert_changes(watch, &["a/b/f"]);
    at.write("c/b/f");
    at.assert_changes(watch, &[]);
    at.mkdir("a/b");
    at.assert_changes(watch, &[]);
    at.write("a/b/f");
    at.assert_changes(watch, &["a/b/f"]);
    at.rmdir("a");
    at.assert_changes(watch, &["a/b/f"]);
    at.rename("c", "a");
    at.assert_changes(watch, &["a/b/f"]);
    at.write("a/b/f");
    at.assert_changes(watch, &["a/b/f"]);
}

#[test]
fn hard_link_changes_its_file() {
    let mut at = Fixture::new();
    at.write("f");
    at.mkdir("d");
    fs::hard_link(at.path("f"), at.path("d/other")).unwrap();
    let watch = at.watch("f");
    at.write("d/other");
    at.assert_changes(watch, &["f"]);
}

#[test]
fn direct_entries_of_a_directory_are_reported() {
    let mut at = Fixture::new();
    at.mkdir("d/sub");
    at.write("d/old");
    let watch = at.watch("d");
    at.write("d/new");
    at.assert_changes(watch, &["d/new"]);
    at.rename("d/old", "d/renamed");
    at.assert_changes(watch, &["d/old", "d/renamed"]);
    at.chmod("d/renamed", 0o600);
    at.assert_changes(watch, &["d/renamed"]);
    at.remove("d/renamed");
    at.assert_changes(watch, &["d/renamed"]);
    at.write("d/sub/deep");
    at.assert_changes(watch, &[]);
    at.chmod("d", 0o700);
    at.assert_changes(watch, &["d"]);
}

#[test]
fn directory_survives_renaming_and_creation() {
    let mut at = Fixture::new();
    at.mkdir("d");
    let watch = at.watch("d");
    at.rename("d", "away");
    at.assert_changes(watch, &["d"]);
    at.write("away/f");
    at.assert_changes(watch, &[]);
    at.mkdir("d");
    at.assert_changes(watch, &["d"]);
    at.write("d/f");
    at.assert_changes(watch, &["d/f"]);
    at.rmdir("d");
    at.assert_changes(watch, &["d", "d/f"]);
    at.rename("away", "d");
    at.assert_changes(watch, &["d", "d/f"]);
}

#[test]
fn path_that_appears_is_reported() {
    let mut at = Fixture::new();
    let file = at.watch("x/y/f");
    at.write("unrelated");
    at.mkdir("x");
    at.assert_changes(file, &[]);
    at.mkdir("x/y");
    at.write("x/y/f");
    at.assert_changes(file, &["x/y/f"]);
    let directory = at.watch("later");
    at.mkdir("later");
    at.assert_changes(directory, &["later"]);
    at.write("later/f");
    at.assert_changes(directory, &["later/f"]);
}

#[test]
fn link_reports_changes_of_its_target() {
    let mut at = Fixture::new();
    at.mkdir("t");
    at.write("t/file");
    at.link("t/file", "link");
    let watch = at.watch("link");
    at.write("t/file");
    at.assert_changes(watch, &["link"]);
    at.write("new");
    at.rename("new", "t/file");
    at.assert_changes(watch, &["link"]);
    at.remove("t/file");
    at.assert_changes(watch, &["link"]);
    at.write("t/file");
    at.assert_changes(watch, &["link"]);
    at.remove("link");
    at.assert_changes(watch, &["link"]);
}

#[test]
fn link_to_a_directory_reports_entries_below_itself() {
    let mut at = Fixture::new();
    at.mkdir("t");
    at.link("t", "link");
    let watch = at.watch("link");
    at.write("t/f");
    at.assert_changes(watch, &["link/f"]);
    let below = at.watch("link/f");
    at.write("t/f");
    at.assert_changes(below, &["link/f"]);
}

#[test]
fn dangling_link_does_not_report_its_target() {
    let mut at = Fixture::new();
    at.link("nowhere", "link");
    let watch = at.watch("link");
    at.write("nowhere");
    at.assert_changes(watch, &[]);
    at.remove("link");
    at.assert_changes(watch, &["link"]);
    at.link("loop", "loop");
    let looped = at.watch("loop");
    at.remove("loop");
    at.assert_changes(looped, &["loop"]);
}

#[test]
fn several_watches_of_one_path_are_independent() {
    let mut at = Fixture::new();
    at.mkdir("d");
    let (first, second) = (at.watch("d"), at.watch("d"));
    at.write("d/f");
    let seen = at.changes(first);
    assert!(seen.0.contains("d/f"));
    at.watcher.unwatch(first);
    at.write("d/g");
    at.assert_changes(second, &["d/g"]);
    at.write("d/h");
    at.assert_changes(first, &[]);
}

#[test]
fn watches_are_limited() {
    let at = Fixture::with_limits(WatchLimits {
        watches: 2,
        ..WatchLimits::default()
    });
    at.watch("");
    let error = at.try_watch(&at.path(""), false).unwrap_err();
    assert!(
        matches!(error, WatchError::TooManyWatches { limit: 2 }),
        "{error}"
    );
}

#[test]
fn limit_of_the_kernel_names_its_setting() {
    let texts = [
        WatchError::TooManyInstances,
        WatchError::TooManyKernelWatches,
    ]
    .map(|error| error.to_string());
    assert!(texts[0].contains("fs.inotify.max_user_instances"));
    assert!(texts[1].contains("fs.inotify.max_user_watches"));
}
