//! Process group trees, which find all descendants except daemons.

use outpost_process::{Exit, TreeKind};

use crate::support::*;

#[tokio::test]
async fn requested_kind_is_used() {
    assert_eq!(group_spawner().tree_kind(), TreeKind::Group);
}

#[tokio::test]
async fn descendants_outside_the_group_are_found_by_parent() {
    // Three nested sessions, each with a living parent.
    let deep = "setsid sh -c 'setsid sh -c \"sleep 1000 & echo deep \\$!; wait\" & wait' & wait";
    for stdio in [PIPES, PTY] {
        let mut child = start(&group_spawner(), sh(deep, stdio)).await;
        let number = expect_number(&mut child.outputs[0], "deep ").await;
        let _end = KillOnDrop(number);
        child.control.kill_tree().expect("it is killed");
        assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(9));
        gone(number).await;
    }
}

#[tokio::test]
async fn orphans_are_found_by_session() {
    // Job control puts it into its own group; its parent exits.
    let script = "set -m; sh -c 'sleep 1000 & echo orphan $!'; sleep 1000";
    let mut child = start(&group_spawner(), sh(script, PTY)).await;
    let orphan = expect_number(&mut child.outputs[0], "orphan ").await;
    let _end = KillOnDrop(orphan);
    child.control.kill_tree().expect("it is killed");
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(9));
    gone(orphan).await;
}

#[tokio::test]
async fn forking_tree_is_killed() {
    // Each process starts the next in the same group and exits.
    let script = r#"f() { f & }; echo ready; while :; do (: & : & :) & wait; done"#;
    let mut child = start(&group_spawner(), sh(script, PIPES)).await;
    expect(&mut child.outputs[0], "ready").await;
    child.control.kill_tree().expect("it is killed");
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(9));
    // A surviving process would hold the pipe open.
    within("the end", read_to_end(&mut child.outputs[0])).await;
    within("the end", read_to_end(&mut child.outputs[1])).await;
}

#[tokio::test]
async fn unrelated_processes_are_not_killed() {
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
