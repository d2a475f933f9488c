//! Directories in a tree that must not be read.

use crate::support::Fixture;

#[test]
fn unreadable_directory_is_reported_and_watched_once_it_can_be_read() {
    let mut at = Fixture::unprivileged();
    at.mkdir("t/a/secret/deep");
    at.chmod("t/a/secret", 0);
    let watch = at.watch_tree("t");
    at.assert_changes(watch, &[]);
    assert_eq!(at.unreadable(), ["t/a/secret"]);
    at.chmod("t/a/secret", 0o100);
    at.assert_changes(watch, &["t/a/secret"]);
    assert!(at.unreadable().is_empty(), "reported once");
    at.chmod("t/a/secret", 0o700);
    at.assert_changes(watch, &["t/a/secret", "t/a/secret/deep"]);
    at.write("t/a/secret/deep/f");
    at.assert_changes(watch, &["t/a/secret/deep/f"]);
    assert!(at.unreadable().is_empty());
}

#[test]
fn directory_below_an_unsearchable_one_is_reported_and_watched_later() {
    let mut at = Fixture::unprivileged();
    at.mkdir("t/a/b");
    at.chmod("t/a", 0o400);
    let watch = at.watch_tree("t");
    at.assert_changes(watch, &[]);
    assert_eq!(at.unreadable(), ["t/a/b"]);
    at.chmod("t/a", 0o700);
    at.assert_changes(watch, &["t/a"]);
    at.write("t/a/b/f");
    at.assert_changes(watch, &["t/a/b/f"]);
    // Also if the watched directory itself is the one.
    at.mkdir("u/b");
    at.chmod("u", 0o400);
    at.assert_changes(watch, &[]);
    let watch = at.watch_tree("u");
    at.assert_changes(watch, &[]);
    assert_eq!(at.unreadable(), ["u/b"]);
    at.chmod("u", 0o700);
    at.assert_changes(watch, &["u"]);
    at.write("u/b/f");
    at.assert_changes(watch, &["u/b/f"]);
}

#[test]
fn unreadable_directory_that_appears_is_reported() {
    let mut at = Fixture::unprivileged();
    at.mkdir("t");
    at.mkdir("x/y");
    // Still writable: otherwise it cannot be moved to another directory.
    at.chmod("x", 0o300);
    let watch = at.watch_tree("t");
    at.rename("x", "t/x");
    at.assert_changes(watch, &["t/x"]);
    assert_eq!(at.unreadable(), ["t/x"]);
    at.rename("t/x", "x");
    at.assert_changes(watch, &["t/x"]);
    // Another directory has the name now.
    at.mkdir("t/x");
    at.assert_changes(watch, &["t/x"]);
    at.chmod("t/x", 0o755);
    at.write("t/x/f");
    at.assert_changes(watch, &["t/x", "t/x/f"]);
    assert!(at.unreadable().is_empty());
    at.chmod("x", 0o700);
}

#[test]
fn many_unreadable_directories_are_reported_as_missed_changes() {
    let mut at = Fixture::unprivileged();
    for number in 0..1100 {
        let name = format!("t/{number}");
        at.mkdir(&name);
        at.chmod(&name, 0);
    }
    let watch = at.watch_tree("t");
    let (_, missed) = at.changes(watch);
    assert!(missed);
    assert_eq!(at.unreadable().len(), 1024);
}
