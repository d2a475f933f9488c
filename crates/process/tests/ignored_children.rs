//! A program that ignores SIGCHLD loses the exit status of children. In its own program, because
//! dispositions are process-wide.
#![expect(unsafe_code, reason = "dispositions are set through libc")]

#[path = "behaviour/support.rs"]
#[expect(dead_code, reason = "this test needs only a part of it")]
mod support;

use outpost_process::{Exit, Spawner, SpawnerOptions};
use support::*;

#[tokio::test]
async fn spawner_fails_while_sigchld_is_ignored() {
    // SAFETY: installs no handler.
    let before = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    let refused = Spawner::new(SpawnerOptions::default());
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGCHLD, before) };
    let error = refused.expect_err("children would be lost");
    assert!(error.to_string().contains("SIGCHLD"), "{error}");

    let finished = run(&spawner(), sh("exit 3", PIPES)).await;
    assert_eq!(finished.exit, Exit::Code(3));
}
