//! Recursive watches, many files, and lost events.

use std::fs;
use std::time::Duration;

use outpost_files::{WatchError, WatchLimits};

use crate::support::Fixture;

#[test]
fn everything_below_is_reported() {
    let mut at = Fixture::new();
    at.mkdir("t/a/b");
    let watch = at.watch_tree("t");
    at.write("t/a/b/f");
    at.assert_changes(watch, &["t/a/b/f"]);
    at.mkdir("t/new/deep");
    at.write("t/new/deep/f");
    at.assert_changes(watch, &["t/new", "t/new/deep", "t/new/deep/f"]);
    at.write("t/new/deep/f");
    at.assert_changes(watch, &["t/new/deep/f"]);
}

#[test]
fn moved_directories_are_followed_inside_and_not_outside() {
    let mut at = Fixture::new();
    at.mkdir("t/a/b");
    at.write("t/a/b/f");
    let watch = at.watch_tree("t");
    at.rename("t/a", "t/c");
    at.assert_changes(watch, &["t/a", "t/c", "t/c/b", "t/c/b/f"]);
    at.write("t/c/b/f");
    at.assert_changes(watch, &["t/c/b/f"]);
    at.rename("t/c", "outside");
    at.assert_changes(watch, &["t/c"]);
    at.write("outside/b/f");
    at.assert_changes(watch, &[]);
    at.rename("outside", "t/back");
    at.assert_changes(watch, &["t/back", "t/back/b", "t/back/b/f"]);
}

#[test]
fn removed_tree_is_watched_again_when_it_returns() {
    let mut at = Fixture::new();
    at.mkdir("t/a");
    let watch = at.watch_tree("t");
    at.rmdir("t");
    at.assert_changes(watch, &["t", "t/a"]);
    at.mkdir("t/x");
    let (names, _) = at.changes(watch);
    assert!(names.contains("t"), "{names:?}");
    at.write("t/x/f");
    at.assert_changes(watch, &["t/x/f"]);
}

#[test]
fn links_in_a_tree_are_not_followed() {
    let mut at = Fixture::new();
    at.mkdir("t");
    at.mkdir("other");
    at.link("../other", "t/link");
    let watch = at.watch_tree("t");
    at.write("other/f");
    at.assert_changes(watch, &[]);
}

#[test]
fn ten_thousand_files_are_reported() {
    let mut at = Fixture::new();
    at.mkdir("t");
    let watch = at.watch_tree("t");
    for number in 0..10_000 {
        let directory = format!("t/{}", number / 100);
        if number % 100 == 0 {
            at.mkdir(&directory);
        }
        at.write(&format!("{directory}/{number}"));
    }
    let (names, missed) = at.changes(watch);
    assert!(missed || names.len() == 10_100, "{} names", names.len());
}

#[test]
fn overflow_of_the_queue_is_reported_and_the_watch_goes_on() {
    let mut at = Fixture::new();
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    at.mkdir("t/a");
    // The watcher's thread waits in here, and reads no events meanwhile.
    let (release, released) = std::sync::mpsc::sync_channel::<()>(1);
    let watch = at.watch_tree("t");
    let blocking = at.watcher.reserve();
    let options = outpost_files::WatchOptions::default();
    at.watcher.watch(blocking, at.path("t"), options, move |_| {
        let _ = released.recv();
    });
    // Two events that differ from the one before, so that the kernel does not merge them.
    for _ in 0..=limit / 2 {
        at.chmod("t/a", 0o700);
        at.chmod("t", 0o700);
    }
    at.rename("t/a", "t/b");
    release.send(()).unwrap();
    let (names, missed) = at.changes(watch);
    assert!(missed, "the client is told");
    assert!(names.contains("t"));
    at.write("t/b/f");
    at.assert_changes(watch, &["t/b/f"]);
}

#[test]
fn overflow_fires_the_watch_of_missing_paths() {
    let mut at = Fixture::new();
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    at.mkdir("a");
    at.watch("");
    assert!(at.missing(1, &["missing"], None));
    let (release, released) = std::sync::mpsc::sync_channel::<()>(1);
    let blocking = at.watcher.reserve();
    let options = outpost_files::WatchOptions::default();
    at.watcher.watch(blocking, at.path("a"), options, move |_| {
        let _ = released.recv();
    });
    at.write("b");
    for _ in 0..=limit / 2 {
        at.chmod("a", 0o700);
        at.chmod("b", 0o600);
    }
    release.send(()).unwrap();
    assert_eq!(at.fired(), [1]);
}

#[test]
fn number_of_directories_is_limited() {
    let mut at = Fixture::with_limits(WatchLimits {
        directories: 40,
        gather: Duration::from_millis(20),
        ..WatchLimits::default()
    });
    at.mkdir("small");
    let watch = at.watch_tree("small");
    for number in 0..50 {
        at.mkdir(&format!("large/{number}"));
    }
    let error = at.try_watch(&at.path("large"), true).unwrap_err();
    assert!(
        matches!(error, WatchError::TooManyDirectories { limit: 40 }),
        "{error}"
    );
    at.write("small/f");
    at.assert_changes(watch, &["small/f"]);
    for number in 0..50 {
        at.mkdir(&format!("small/{number}"));
    }
    let (_, missed) = at.changes(watch);
    assert!(missed, "later directories may be missed");
}

#[test]
fn memory_of_the_changes_is_limited() {
    let mut at = Fixture::with_limits(WatchLimits {
        change_bytes: 2048,
        gather: Duration::from_millis(200),
        ..WatchLimits::default()
    });
    let watch = at.watch("");
    for number in 0..100 {
        at.write(&format!("f{number}"));
    }
    let (_, missed) = at.changes(watch);
    assert!(missed);
    at.write("last");
    at.assert_changes(watch, &["last"]);
}
