//! What happens to the mother of keepers.

use outpost_process::Exit;
use rustix::process::Signal as Os;

use crate::support::*;

#[tokio::test]
async fn when_she_is_killed_another_one_is_started_and_running_trees_go_on() {
    let spawner = spawner();
    let script = "setsid sh -c 'sleep 1000 & echo left $!'; read go; exit 4";
    let mut child = start(&spawner, sh(script, PIPES_AND_STDIN)).await;
    let left = expect_number(&mut child.outputs[0], "left ").await;
    let mother = mother_of(&child);
    send(mother, Os::KILL);
    gone(mother).await;

    // Enough at once that the keepers which are ready don't do.
    let mut others = Vec::new();
    for _ in 0..8 {
        others.push(start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await);
    }
    let next = others.iter().map(|child| mother_of(child));
    let next: Vec<_> = next.filter(|next| is_mother(*next)).collect();
    assert!(!next.is_empty() && !next.contains(&mother), "{next:?}");
    for mut other in others {
        drop(other.stdin.take());
        assert_eq!(finish(&mut other).await.exit, Exit::Code(0));
    }

    write_all(child.stdin.as_ref().expect("there is input"), b"\n").await;
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(4));
    child.exit.reap();
    child.control.kill_tree().expect("it is killed");
    gone(left).await;
}

/// Whoever inherits keepers that have lost theirs has another name.
fn is_mother(pid: i32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name == "keeper-mother\n"
}

#[tokio::test]
async fn one_that_was_stopped_is_made_to_go_on() {
    let spawner = spawner();
    let first = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
    let mother = mother_of(&first);
    send(mother, Os::STOP);
    eventually("the stop", || state(mother) == Some('T')).await;
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await);
    }
    assert!(others.iter().all(|child| is_running(pid(child))));
}

#[tokio::test]
async fn she_goes_with_the_spawner_and_takes_all_keepers_along() {
    let spawner = spawner();
    let mut child = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
    let mother = mother_of(&child);
    drop(child.stdin.take());
    finish(&mut child).await;
    drop(child);
    let family = children_of(mother);
    assert!(!family.is_empty(), "some are ready for what comes");
    drop(spawner);
    for keeper in family {
        gone(keeper).await;
    }
    assert_eq!(stat(mother), None, "and she is reaped");
}
