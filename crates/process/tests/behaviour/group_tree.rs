//! Trees where there are only process groups: what `/proc` tells is enough for all but daemons.

use outpost_process::{Exit, TreeKind};

use crate::support::*;

#[tokio::test]
async fn the_kind_is_what_was_asked_for() {
    assert_eq!(group_spawner().tree_kind(), TreeKind::Group);
}

#[tokio::test]
async fn descendants_that_left_the_group_are_found_by_their_parents() {
    // Three sessions deep, each with a parent that lives.
    let deep = "setsid sh -c 'setsid sh -c \"sleep 1000 & echo deep \\$!; wait\" & wait' & wait";
    for stdio in [PIPES, PTY] {
        let mut child = start(&group_spawner(), sh(deep, stdio)).await;
        let number = expect_number(&mut child.outputs[0], "deep ").await;
        let _end = Stranger(number);
        child.control.kill_tree().expect("it is killed");
        assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(9));
        gone(number).await;
    }
}

#[tokio::test]
async fn orphans_are_found_by_their_session() {
    // Job control puts it into a group of its own; its parent goes.
    let script = "set -m; sh -c 'sleep 1000 & echo orphan $!'; sleep 1000";
    let mut child = start(&group_spawner(), sh(script, PTY)).await;
    let orphan = expect_number(&mut child.outputs[0], "orphan ").await;
    let _end = Stranger(orphan);
    child.control.kill_tree().expect("it is killed");
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(9));
    gone(orphan).await;
}

#[tokio::test]
async fn a_tree_that_keeps_forking_is_caught() {
    // Each one starts the next and goes, in the same group, as fast as it can.
    let script = r#"f() { f & }; echo ready; while :; do (: & : & :) & wait; done"#;
    let mut child = start(&group_spawner(), sh(script, PIPES)).await;
    expect(&mut child.outputs[0], "ready").await;
    child.control.kill_tree().expect("it is killed");
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(9));
    // Whoever is left would hold the pipe.
    within("the end", read_to_end(&mut child.outputs[0])).await;
    within("the end", read_to_end(&mut child.outputs[1])).await;
}

#[tokio::test]
async fn strangers_are_left_alone() {
    let spawner = group_spawner();
    let mut stranger = start(&spawner, command(&["sleep", "1000"], PIPES)).await;
    let child = start(&spawner, sh("sleep 1000 & sleep 1000", PIPES)).await;
    child.control.kill_tree().expect("it is killed");
    assert!(is_running(pid(&stranger)));
    stranger.control.kill_tree().expect("it is killed");
    assert_eq!(
        within("the exit", stranger.exit.wait()).await,
        Exit::Signal(9)
    );
}
