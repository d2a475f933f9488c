//! Tests watches of the Rust client on the real server.

use std::{fs, path::Path};

use outpost_client::{Executor as _, FileChanges, FileWatch, WatchOptions};
use outpost_testkit::{FaultyLink, deadline};
use rustix::process::Signal;

use super::{connect, cuts::wait_reconnected};
use crate::outpost;

const TREE: WatchOptions = WatchOptions { recursive: true };

async fn next(watch: &mut FileWatch) -> FileChanges {
    let next = deadline::expect_soon("changes", watch.next()).await;
    next.unwrap_or_else(|error| panic!("{error}"))
}

/// Waits until a change of this path is reported. Returns whether changes were missed before.
async fn until(watch: &mut FileWatch, path: &Path) -> bool {
    let mut missed = false;
    loop {
        let changes = next(watch).await;
        missed |= changes.missed;
        if changes.paths.iter().any(|changed| changed == path) {
            return missed;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_survives_cuts_and_tells_that_it_missed_changes() {
    let server = outpost().start().await;
    let link = FaultyLink::to(server.address()).await;
    let remote = connect(link.url()).await.unwrap();
    let dir = server.dir().canonicalize().expect("a path");
    let mut watch = remote.watch(&dir, TREE).await.unwrap();
    for round in 0..5 {
        let before = dir.join(format!("{round}-before"));
        fs::write(&before, "").expect("a file");
        assert!(!until(&mut watch, &before).await, "nothing is missed");
        let cut = async {
            link.cut().await;
            fs::write(dir.join(format!("{round}-meanwhile")), "").expect("a file");
            link.open();
        };
        wait_reconnected(&remote, cut).await;
        assert!(next(&mut watch).await.missed, "it may have missed changes");
    }
    let after = dir.join("after");
    fs::write(&after, "").expect("a file");
    assert!(!until(&mut watch, &after).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn kernel_queue_overflow_is_reported() {
    let server = outpost().start().await;
    let remote = connect(&server.urls()[0]).await.unwrap();
    let dir = server.dir().canonicalize().expect("a path");
    fs::create_dir(dir.join("d")).expect("a directory");
    let mut watch = remote.watch(&dir, TREE).await.unwrap();
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("a limit");
    let limit: usize = limit.trim().parse().expect("a number");
    // A stopped server reads no events.
    server.signal(Signal::STOP);
    // The kernel does not merge an event with one of another file.
    for number in 0..=limit {
        fs::write(dir.join(format!("d/{}", number % 100)), "x").expect("a file");
    }
    server.signal(Signal::CONT);
    while !next(&mut watch).await.missed {}
    let after = dir.join("d/after");
    fs::write(&after, "").expect("a file");
    until(&mut watch, &after).await;
}
