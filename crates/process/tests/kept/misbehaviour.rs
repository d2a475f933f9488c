//! Programs that do what they can to stay.

use outpost_process::{Exit, Signal, Stdio};
use tempfile::TempDir;

use crate::support::*;

/// A word no other test has.
fn mark(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

/// A script in a file, so that it can start itself.
fn program(text: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program");
    script(&path, text, 0o755);
    let path = path.to_str().expect("plain").to_owned();
    (folder, path)
}

/// Kills a tree whose members all have this mark, once `enough` of them are there.
async fn killed(stdio: Stdio, argv: &[&str], mark: &str, enough: usize) {
    let spawner = spawner();
    let mut child = start(&spawner, command(argv, stdio)).await;
    eventually("enough of them", || who_has(mark).len() >= enough).await;
    child.control.kill_tree().expect("it is killed");
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(9));
    child.exit.reap();
    let control = child.control.clone();
    eventually("the end of all", || !control.has_leftovers()).await;
    assert_eq!(who_has(mark), Vec::<i32>::new());
}

#[tokio::test]
async fn one_that_closes_everything_and_ignores_all_it_can() {
    let mark = mark("hermit");
    let hide = "trap '' HUP INT QUIT TERM; exec <&- >&- 2>&-; sleep 1000; sleep 1000";
    // Twice a session and a fork, and the parents go; the leader stays.
    let (_folder, path) = program(&format!(
        "case $2 in 0) setsid sh $0 $1 1 & ;; 1) setsid sh $0 $1 2 & exit ;; 2) {hide} ;; esac\n\
         exec sleep 1000"
    ));
    for stdio in [PIPES, PTY] {
        killed(stdio, &["sh", &path, &mark, "0"], &mark, 1).await;
    }
}

#[tokio::test]
async fn a_bomb_of_sessions() {
    let mark = mark("bomb");
    // Each starts two more in sessions of their own, 9 deep, and stays: a thousand.
    let (_folder, path) = program(
        "test $2 -gt 0 && for i in 1 2; do setsid sh $0 $1 $(($2 - 1)) & done\nwait\nsleep 1000",
    );
    killed(PIPES, &["sh", &path, &mark, "9"], &mark, 100).await;
}

#[tokio::test]
async fn runners() {
    let mark = mark("runner");
    // Each starts the next in a session of its own and goes: nobody is there for long, nobody has
    // a parent. Bounded, for the case that nobody catches them.
    let (_folder, path) = program(
        "case $2 in 0) for i in 1 2 3 4 5; do setsid sh $0 $1 500 & done; exec sleep 1000 ;; esac\n\
         test $2 -gt 1 && setsid sh $0 $1 $(($2 - 1)) &",
    );
    for _ in 0..3 {
        killed(PIPES, &["sh", &path, &mark, "0"], &mark, 3).await;
    }
}

#[tokio::test]
async fn a_bomb_within_the_process_limit() {
    if rustix::process::geteuid().is_root() {
        return; // The limit isn't for root.
    }
    let mark = mark("limited");
    let count = std::fs::read_dir("/proc").expect("there is a proc").count() + 100;
    // Forks whenever there is room, for ever.
    let (_folder, path) = program(&format!(
        "ulimit -u {count}\nwhile :; do setsid bash $0 $1 2>/dev/null & done"
    ));
    killed(PIPES, &["bash", &path, &mark], &mark, 20).await;
}

#[tokio::test]
async fn the_holder_of_the_pipe() {
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
async fn one_that_is_stopped() {
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
async fn exiting_while_being_killed() {
    let spawner = spawner();
    let mark = mark("short");
    for round in 0..100 {
        // It ends by itself about when it is killed, and so do two it has left.
        let script = "sleep 0.001 & setsid sleep 0.001 & sleep 0.001";
        let argv = ["sh", "-c", script, &mark];
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
        assert_eq!(who_has(&mark), Vec::<i32>::new());
    }
}

#[tokio::test]
async fn reparenting_between_the_signal_and_the_kill() {
    let spawner = spawner();
    // Asked to end, it leaves another one in its place, in another session.
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
