//! Exit status and reaping.

use std::time::Duration;

use outpost_process::{Exit, TreeKind};

use crate::support::*;

#[tokio::test]
async fn exit_code_is_reported() {
    for code in [0, 1, 7, 127, 255] {
        let finished = run(&spawner(), sh(&format!("exit {code}"), PIPES)).await;
        assert_eq!(finished.exit, Exit::Code(code));
        let finished = run(&spawner(), sh(&format!("exit {code}"), PTY)).await;
        assert_eq!(finished.exit.code(), code);
    }
}

#[tokio::test]
async fn wait_is_cancel_safe() {
    let mut child = start(&spawner(), command(&["cat"], PIPES_AND_STDIN)).await;
    for _ in 0..3 {
        let moment = tokio::time::timeout(Duration::from_millis(1), child.exit.wait());
        assert!(moment.await.is_err(), "it runs");
    }
    child.exit.reap();
    assert!(is_running(pid(&child)), "reaping what runs does nothing");
    drop(child.stdin.take());
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(0));
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(0));
}

#[tokio::test]
async fn child_is_zombie_until_reaped() {
    let mut child = start(&spawner(), sh("exit 3", PIPES)).await;
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(3));
    assert_eq!(state(pid(&child)), Some('Z'));
    child.exit.reap();
    // A subreaper reaps asynchronously.
    let number = pid(&child);
    eventually("the reaping", || state(number).is_none()).await;
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(3));
}

#[tokio::test]
async fn reap_without_wait_keeps_the_status() {
    let mut child = start(&spawner(), sh("exit 3", PIPES)).await;
    let number = pid(&child);
    eventually("the zombie", || state(number) == Some('Z')).await;
    child.exit.reap();
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Code(3));
}

#[tokio::test]
async fn status_taken_elsewhere_is_lost() {
    let spawner = spawner();
    if spawner.tree_kind() == TreeKind::Subreaper {
        return; // Only its subreaper can wait for it.
    }
    let mut child = start(&spawner, sh("exit 3", PIPES)).await;
    let number = rustix::process::Pid::from_raw(pid(&child));
    let options = rustix::process::WaitOptions::empty();
    let stolen = move || rustix::process::waitpid(number, options).is_ok();
    let stolen = tokio::task::spawn_blocking(stolen).await;
    assert!(stolen.expect("it is waited for"));
    let exit = within("the exit", child.exit.wait()).await;
    assert_eq!(exit, Exit::Lost);
    assert_eq!(exit.code(), -1);
}

#[tokio::test]
async fn unwatched_child_keeps_running_and_is_reaped() {
    let spawner = spawner();
    let child = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
    let number = pid(&child);
    let outpost_process::Child {
        stdin,
        control,
        outputs,
        exit,
    } = child.into_inner();
    drop(exit);
    assert!(is_running(number));
    drop(stdin);
    eventually("the reaping", || state(number).is_none()).await;
    assert!(
        !control
            .signal(outpost_process::Signal::Kill)
            .expect("nothing is sent")
    );
    drop(outputs);
}

#[tokio::test]
async fn cancelled_start_leaves_no_process() {
    let spawner = spawner();
    let mark = format!("98765{}", std::process::id());
    for round in 0..50 {
        let spawn = spawner.spawn(command(&["sleep", &mark], PIPES));
        // Cancelled at different moments: before, during and after the launch.
        let moment = Duration::from_micros(round * 20);
        if let Ok(Ok(child)) = tokio::time::timeout(moment, spawn).await {
            child.control.kill_tree().expect("it is killed");
        }
    }
    eventually("the end of all", || !any_process_has_argument(&mark)).await;
}

/// Whether a process has this argument. Zombies have no arguments, but they would be children of this
/// program.
fn any_process_has_argument(mark: &str) -> bool {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").expect("there is a proc");
    for entry in entries.flatten() {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let argument = |part: &[u8]| part == mark.as_bytes();
        if command.split(|byte| *byte == 0).any(argument) {
            return true;
        }
        let name = entry.file_name();
        let stat = name
            .to_str()
            .and_then(|name| name.parse().ok())
            .and_then(stat);
        let zombie_sleep = std::fs::read_to_string(entry.path().join("comm"))
            .is_ok_and(|comm| comm == "sleep\n")
            && stat.is_some_and(|stat| stat.starts_with(&format!("Z {own} ")));
        if zombie_sleep {
            return true;
        }
    }
    false
}
