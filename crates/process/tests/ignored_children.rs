//! A program that ignores SIGCHLD, as it may have been started, can't know how children end. Alone in
//! its program, since dispositions are the program's.
#![expect(unsafe_code, reason = "dispositions are set through libc")]

#[path = "behaviour/support.rs"]
#[expect(dead_code, reason = "this test needs only a part of it")]
mod support;

use outpost_process::{Exit, Spawner, SpawnerOptions};
use support::*;

#[tokio::test]
async fn nothing_starts_where_ends_are_lost() {
    // SAFETY: no handler of ours runs, and no other thread has a say in it.
    let before = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    let refused = Spawner::new(SpawnerOptions::default());
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGCHLD, before) };
    let error = refused.expect_err("children would be lost");
    assert!(error.to_string().contains("SIGCHLD"), "{error}");

    let finished = run(&spawner(), sh("exit 3", PIPES)).await;
    assert_eq!(finished.exit, Exit::Code(3));
}
