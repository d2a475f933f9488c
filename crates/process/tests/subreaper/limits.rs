//! Process limits of subreapers and their children. Skipped for root, which is not limited.

use outpost_process::{Exit, SpawnErrorKind};
use rustix::process::{Pid, Resource, Rlimit};

use crate::support::*;

/// Sets RLIMIT_NPROC of a process, or restores it.
fn limit(pid: i32, processes: Option<u64>) {
    let limit = Rlimit {
        current: processes,
        maximum: rustix::process::getrlimit(Resource::Nproc).maximum,
    };
    let limit = match processes {
        Some(_) => limit,
        None => rustix::process::getrlimit(Resource::Nproc),
    };
    rustix::process::prlimit(Pid::from_raw(pid), Resource::Nproc, limit).expect("it is ours");
}

#[tokio::test]
async fn process_limit_fails_only_the_start() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let spawner = spawner();
    let first = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
    let factory = factory_of(&first);
    // One subreaper is kept in reserve after the first start.
    eventually("the next subreaper", || children_of(factory).len() == 2).await;
    limit(factory, Some(1));
    let mut all = children_of(factory);
    for pid in &all {
        limit(*pid, Some(1));
    }
    all.push(factory);
    // The first starts have a subreaper that cannot fork; for the later ones the factory cannot fork.
    for _ in 0..2 * all.len() {
        let spawned = within("the answer", spawner.spawn(command(&["true"], PIPES))).await;
        let error = spawned.expect_err("there are more already");
        assert_eq!(error.kind(), SpawnErrorKind::Clone);
        assert_eq!(error.raw_os_error(), Some(11), "{error}");
    }
    for pid in all.iter().filter(|pid| is_running(**pid)) {
        limit(*pid, None);
    }
    let finished = run(&spawner, sh("exit 3", PIPES)).await;
    assert_eq!(finished.exit, Exit::Code(3), "afterwards all is well");
}
