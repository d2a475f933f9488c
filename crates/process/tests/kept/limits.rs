//! Too few processes for a keeper, or for what it is to start. Not for root, whom nothing limits.

use outpost_process::{Exit, SpawnErrorKind};
use rustix::process::{Pid, Resource, Rlimit};

use crate::support::*;

/// How many processes this one's user may have for it to start another.
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
async fn it_is_the_answer_to_one_start() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let spawner = spawner();
    let first = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
    let mother = mother_of(&first);
    // The next one is made ready as soon as there is a first one, and nobody else is before it is
    // needed.
    eventually("the next keeper", || children_of(mother).len() == 2).await;
    limit(mother, Some(1));
    let mut everybody = children_of(mother);
    for pid in &everybody {
        limit(*pid, Some(1));
    }
    everybody.push(mother);
    // The first have a keeper that can't start them, the next get none.
    for _ in 0..2 * everybody.len() {
        let spawned = within("the answer", spawner.spawn(command(&["true"], PIPES))).await;
        let error = spawned.expect_err("there are more already");
        assert_eq!(error.kind(), SpawnErrorKind::Clone);
        assert_eq!(error.raw_os_error(), Some(11), "{error}");
    }
    for pid in everybody.iter().filter(|pid| is_running(**pid)) {
        limit(*pid, None);
    }
    let finished = run(&spawner, sh("exit 3", PIPES)).await;
    assert_eq!(finished.exit, Exit::Code(3), "afterwards all is well");
}
