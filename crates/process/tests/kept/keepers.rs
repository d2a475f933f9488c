//! What happens to keepers themselves.

use outpost_process::{Exit, Signal};
use rustix::process::Signal as Os;

use crate::support::*;

#[tokio::test]
async fn a_child_that_kills_its_keeper_dies_with_all_it_has() {
    let spawner = spawner();
    let script = "setsid sh -c 'sleep 1000 & echo other $!'; read go; kill -9 $PPID; sleep 1000";
    let mut child = start(&spawner, sh(script, PIPES_AND_STDIN)).await;
    let other = expect_number(&mut child.outputs[0], "other ").await;
    let (number, keeper) = (pid(&child), keeper_of(&child));
    write_all(child.stdin.as_ref().expect("there is input"), b"\n").await;
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Lost);
    assert!(!child.control.has_leftovers());
    for gone_with_it in [keeper, number, other] {
        gone(gone_with_it).await;
    }
    // Its number may be anybody's.
    assert!(!child.control.signal(Signal::Kill).expect("nothing is sent"));
    child.exit.reap();
    child.control.kill_tree().expect("there is nothing to kill");
    let finished = run(&spawner, sh("exit 3", PIPES)).await;
    assert_eq!(finished.exit, Exit::Code(3), "others aren't concerned");
}

#[tokio::test]
async fn a_child_that_stops_its_keeper_is_killed_all_the_same() {
    let mut child = start(
        &spawner(),
        sh("kill -STOP $PPID; echo done; sleep 1000", PIPES),
    )
    .await;
    expect(&mut child.outputs[0], "done").await;
    child.control.kill_tree().expect("it is killed");
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(9));
}

#[tokio::test]
async fn what_ends_others_doesnt_end_a_keeper_or_its_mother() {
    let spawner = spawner();
    let mut child = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
    let (keeper, mother) = (keeper_of(&child), mother_of(&child));
    for signal in [Os::INT, Os::TERM, Os::HUP, Os::QUIT, Os::USR1, Os::ALARM] {
        send(keeper, signal);
        send(mother, signal);
    }
    // Whoever has died of it isn't there to tell the end.
    drop(child.stdin.take());
    assert_eq!(finish(&mut child).await.exit, Exit::Code(0));
    assert!(is_running(mother));
}

#[tokio::test]
async fn they_are_out_of_reach_of_the_servers_terminal_and_of_each_others_groups() {
    let spawner = spawner();
    let one = start(&spawner, command(&["sleep", "1000"], PIPES)).await;
    let two = start(&spawner, command(&["sleep", "1000"], PIPES)).await;
    let session = |pid: i32| {
        let stat = stat(pid).expect("it is alive");
        stat.split(' ').nth(3).expect("a session").to_owned()
    };
    let mother = mother_of(&one);
    assert_eq!(mother, mother_of(&two));
    for leader in [mother, keeper_of(&one), keeper_of(&two)] {
        assert_eq!(session(leader), leader.to_string());
    }
}

#[tokio::test]
async fn one_that_is_done_keeps_another_program() {
    let spawner = spawner();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..50 {
        let mut child = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
        seen.insert(keeper_of(&child));
        drop(child.stdin.take());
        assert_eq!(finish(&mut child).await.exit, Exit::Code(0));
        let spawned = spawner.spawn(command(&["/no/such/program"], PIPES)).await;
        spawned.expect_err("there is none");
    }
    assert!(seen.len() < 10, "{seen:?}");
}

#[tokio::test]
async fn one_that_isnt_alone_goes_when_it_is() {
    let spawner = spawner();
    let script = "setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo left $!'; read go";
    let mut child = start(&spawner, sh(script, PIPES_AND_STDIN)).await;
    let left = expect_number(&mut child.outputs[0], "left ").await;
    let keeper = keeper_of(&child);
    drop(child.stdin.take());
    finish(&mut child).await;
    assert_eq!(parent(left), keeper, "orphans are inherited");
    assert!(child.control.has_leftovers());
    let _end = Stranger(left);
    drop(_end);
    gone(keeper).await;
    assert!(!child.control.has_leftovers());
}

#[tokio::test]
async fn idle_ones_that_are_killed_are_replaced() {
    let spawner = spawner();
    for _ in 0..5 {
        let mut child = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
        let (mother, busy) = (mother_of(&child), keeper_of(&child));
        for idle in children_of(mother) {
            if idle != busy {
                send(idle, Os::KILL);
                gone(idle).await;
            }
        }
        let finished = run(&spawner, sh("exit 3", PIPES)).await;
        assert_eq!(finished.exit, Exit::Code(3));
        drop(child.stdin.take());
        assert_eq!(finish(&mut child).await.exit, Exit::Code(0));
    }
}

#[tokio::test]
async fn orphans_are_reaped_while_the_leader_runs_and_while_it_is_a_zombie() {
    // Twenty that end without a parent, and one that will.
    let script = "i=0; while test $i -lt 20; do sh -c ': &'; i=$(($i + 1)); done; \
                  sh -c 'sleep 1000 & echo last $!'; read go; exit 0";
    let mut child = start(&spawner(), sh(script, PIPES_AND_STDIN)).await;
    let last = Stranger(expect_number(&mut child.outputs[0], "last ").await);
    let (keeper, number) = (keeper_of(&child), pid(&child));
    eventually("the orphans", || children_of(keeper).len() == 2).await;
    write_all(child.stdin.as_ref().expect("there is input"), b"\n").await;
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(0));
    drop(last);
    eventually("the last one", || children_of(keeper) == [number]).await;
    assert_eq!(state(number), Some('Z'), "it is the server's to release");
}
