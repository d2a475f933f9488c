//! Programs that try to survive.

use outpost_process::{Exit, Signal, Stdio};
use tempfile::TempDir;

use crate::support::*;

/// An argument that is unique to one test.
fn tag(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

/// Writes a script to a file, so that it can start itself.
fn program(text: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program");
    script(&path, text, 0o755);
    let path = path.to_str().expect("plain").to_owned();
    (folder, path)
}

/// Kills a tree whose members all have this argument, once there are `enough` of them.
async fn killed(stdio: Stdio, argv: &[&str], tag: &str, enough: usize) {
    let spawner = spawner();
    let mut child = start(&spawner, command(argv, stdio)).await;
    eventually("enough of them", || pids_with_argument(tag).len() >= enough).await;
    child.control.kill_tree().expect("it is killed");
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(9));
    child.exit.reap();
    let control = child.control.clone();
    eventually("the end of all", || !control.has_leftovers()).await;
    assert_eq!(pids_with_argument(tag), Vec::<i32>::new());
}

#[tokio::test]
async fn daemon_that_ignores_signals_is_killed() {
    let tag = tag("hermit");
    let hide = "trap '' HUP INT QUIT TERM; exec <&- >&- 2>&-; sleep 1000; sleep 1000";
    // A double fork with a new session each time; the parents exit, the leader stays.
    let (_folder, path) = program(&format!(
        "case $2 in 0) setsid sh $0 $1 1 & ;; 1) setsid sh $0 $1 2 & exit ;; 2) {hide} ;; esac\n\
         exec sleep 1000"
    ));
    for stdio in [PIPES, PTY] {
        killed(stdio, &["sh", &path, &tag, "0"], &tag, 1).await;
    }
}

#[tokio::test]
async fn fork_bomb_of_sessions_is_killed() {
    let tag = tag("bomb");
    // Each starts two more in their own sessions, 9 levels deep, and stays: a thousand processes.
    let (_folder, path) = program(
        "test $2 -gt 0 && for i in 1 2; do setsid sh $0 $1 $(($2 - 1)) & done\nwait\nsleep 1000",
    );
    killed(PIPES, &["sh", &path, &tag, "9"], &tag, 100).await;
}

#[tokio::test]
async fn chain_of_short_lived_processes_is_killed() {
    let tag = tag("runner");
    // Each starts the next in its own session and exits, so all are short-lived orphans. Bounded, in
    // case they are not caught.
    let (_folder, path) = program(
        "case $2 in 0) for i in 1 2 3 4 5; do setsid sh $0 $1 5000 & done; exec sleep 1000 ;; esac\n\
         test $2 -gt 1 && setsid sh $0 $1 $(($2 - 1)) &",
    );
    for _ in 0..3 {
        killed(PIPES, &["sh", &path, &tag, "0"], &tag, 3).await;
    }
}

#[tokio::test]
async fn fork_bomb_at_the_process_limit_is_killed() {
    if rustix::process::geteuid().is_root() {
        return; // The limit isn't for root.
    }
    let tag = tag("limited");
    let count = std::fs::read_dir("/proc").expect("there is a proc").count() + 100;
    // Forks endlessly, whenever the limit allows it.
    let (_folder, path) = program(&format!(
        "ulimit -u {count}\nwhile :; do setsid bash $0 $1 2>/dev/null & done"
    ));
    killed(PIPES, &["bash", &path, &tag], &tag, 20).await;
}

#[tokio::test]
async fn descendant_that_holds_the_pipe_is_killed() {
    let spawner = spawner();
    let script = "setsid sh -c 'sleep 1000 & echo holder $!'; exit 0";
    let mut child = start(&spawner, sh(script, PIPES)).await;
    let holder = expect_number(&mut child.outputs[0], "holder ").await;
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(0));
    child.exit.reap();
    assert!(is_running(holder), "a natural exit kills nothing");
    child.control.kill_tree().expect("it is killed");
    within("the end", read_to_end(&mut child.outputs[0])).await;
    within("the end", read_to_end(&mut child.outputs[1])).await;
    gone(holder).await;
}

#[tokio::test]
async fn stopped_process_is_killed() {
    let spawner = spawner();
    let script = "setsid sh -c 'kill -STOP $$' & echo child $!; kill -STOP $$";
    let mut child = start(&spawner, sh(script, PIPES)).await;
    let other = expect_number(&mut child.outputs[0], "child ").await;
    let number = pid(&child);
    eventually("both stopped", || {
        state(number) == Some('T') && state(other) == Some('T')
    })
    .await;
    child.control.kill_tree().expect("it is killed");
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(9));
    gone(other).await;
}

#[tokio::test]
async fn tree_that_exits_while_killed_is_gone() {
    let spawner = spawner();
    let tag = tag("short");
    for round in 0..100 {
        // It exits by itself about when it is killed, and so do two descendants.
        let script = "sleep 0.001 & setsid sleep 0.001 & sleep 0.001";
        let argv = ["sh", "-c", script, &tag];
        let mut child = start(&spawner, command(&argv, PIPES)).await;
        for _ in 0..round * 20 {
            tokio::task::yield_now().await;
        }
        child.control.kill_tree().expect("it is killed");
        let exit = within("the exit", child.exit.wait()).await;
        assert!(matches!(exit, Exit::Code(0) | Exit::Signal(9)), "{exit:?}");
        child.exit.reap();
        let control = child.control.clone();
        eventually("the end of all", || !control.has_leftovers()).await;
        assert_eq!(pids_with_argument(&tag), Vec::<i32>::new());
    }
}

#[tokio::test]
async fn process_started_during_termination_is_killed() {
    let spawner = spawner();
    // On SIGTERM it starts another process in another session and exits.
    let script = "trap 'setsid sleep 1000 & echo heir $!; exit 0' TERM; \
                  echo ready; while :; do sleep 0.01; done";
    let mut child = start(&spawner, sh(script, PIPES)).await;
    expect(&mut child.outputs[0], "ready").await;
    child.control.signal_tree(Signal::Terminate).expect("sent");
    let heir = expect_number(&mut child.outputs[0], "heir ").await;
    child.control.kill_tree().expect("it is killed");
    within("the exit", child.exit.wait()).await;
    gone(heir).await;
}
