//! A spawner that cannot allocate memory fails with an error. In its own program, because the limit is
//! process-wide.

#[path = "behaviour/support.rs"]
#[expect(dead_code, reason = "this test needs only a part of it")]
mod support;

use outpost_process::{Exit, Spawner, SpawnerOptions};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::*;

#[tokio::test]
async fn spawner_without_memory_is_an_error() {
    let before = getrlimit(Resource::As);
    // Below the current usage: no new mappings, existing ones stay.
    let none = Rlimit {
        current: Some(1024 * 1024),
        ..before
    };
    setrlimit(Resource::As, none).expect("a limit may be lowered");
    let refused = Spawner::new(SpawnerOptions::default());
    setrlimit(Resource::As, before).expect("and raised again");
    let error = refused
        .expect_err("there is no memory for stacks")
        .to_string();
    assert!(error.contains("Cannot allocate memory"), "{error}");

    let finished = run(&spawner(), sh("exit 3", PIPES)).await;
    assert_eq!(finished.exit, Exit::Code(3));
}
