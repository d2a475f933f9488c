//! Trees as the host keeps them together, and what their kind promises.

use std::path::PathBuf;

use outpost_process::{Exit, Signal, Stdio, TreeKind};

use crate::support::*;

/// A daemon in its own session whose parent has gone when its number is said.
const DAEMON: &str = "\
    daemon=$(setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'); echo daemon $daemon; ";

#[tokio::test]
async fn the_kind_is_the_best_there_is() {
    let possible = own_cgroup().is_some_and(|own| {
        let trial = own.join(format!("trial-{}", std::process::id()));
        let made = std::fs::create_dir(&trial).is_ok();
        let kills = trial.join("cgroup.kill").exists();
        let _ = std::fs::remove_dir(&trial);
        made && kills
    });
    let best = match possible {
        true => TreeKind::Cgroup,
        false => TreeKind::Group,
    };
    assert_eq!(spawner().tree_kind(), best);
}

async fn a_daemon_is_killed_where_the_kind_can_know_it(stdio: Stdio) {
    let spawner = spawner();
    let mut child = start(&spawner, sh(&format!("{DAEMON} sleep 1000"), stdio)).await;
    let daemon = expect_number(&mut child.outputs[0], "daemon ").await;
    let _end = Stranger(daemon);
    assert!(child.control.has_leftovers());
    child.control.kill_tree().expect("it is killed");
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(9));
    match spawner.tree_kind() {
        TreeKind::Cgroup => gone(daemon).await,
        TreeKind::Group => assert!(is_running(daemon), "known limit of the kind"),
    }
}

#[tokio::test]
async fn a_daemon_is_killed_where_the_kind_can_know_it_on_pipes() {
    a_daemon_is_killed_where_the_kind_can_know_it(PIPES).await;
}

#[tokio::test]
async fn a_daemon_is_killed_where_the_kind_can_know_it_on_a_terminal() {
    a_daemon_is_killed_where_the_kind_can_know_it(PTY).await;
}

#[tokio::test]
async fn a_daemon_left_behind_is_killed_after_the_exit_where_the_kind_can_know_it() {
    let spawner = spawner();
    let mut child = start(&spawner, sh(DAEMON, PIPES)).await;
    let daemon = expect_number(&mut child.outputs[0], "daemon ").await;
    let _end = Stranger(daemon);
    let finished = finish(&mut child).await;
    assert_eq!(finished.exit, Exit::Code(0));
    assert!(is_running(daemon), "a natural exit kills nothing");
    match spawner.tree_kind() {
        TreeKind::Cgroup => {
            assert!(child.control.has_leftovers());
            assert!(!child.control.signal(Signal::Kill).expect("nothing is sent"));
            assert!(is_running(daemon), "signals are for the group");
            child.control.kill_tree().expect("it is killed");
            gone(daemon).await;
            let control = child.control.clone();
            eventually("the end of all", || !control.has_leftovers()).await;
        }
        TreeKind::Group => {
            assert!(!child.control.has_leftovers(), "known limit of the kind");
            child.control.kill_tree().expect("there is nothing to kill");
            assert!(is_running(daemon), "known limit of the kind");
        }
    }
}

#[tokio::test]
async fn what_stayed_in_the_group_is_killed_after_the_exit() {
    for spawner in [spawner(), group_spawner()] {
        let script = "sleep 1000 >/dev/null 2>&1 & echo left $!";
        let mut child = start(&spawner, sh(script, PIPES)).await;
        let left = expect_number(&mut child.outputs[0], "left ").await;
        let _end = Stranger(left);
        finish(&mut child).await;
        assert!(is_running(left), "a natural exit kills nothing");
        assert!(child.control.has_leftovers(), "{:?}", spawner.tree_kind());
        child.control.kill_tree().expect("it is killed");
        gone(left).await;
        let control = child.control.clone();
        eventually("the end of all", || !control.has_leftovers()).await;
    }
}

#[tokio::test]
async fn nothing_is_left_over_of_what_has_ended() {
    for spawner in [spawner(), group_spawner()] {
        let mut child = start(&spawner, command(&["true"], PIPES)).await;
        within("the exit", child.exit.wait()).await;
        assert!(!child.control.has_leftovers(), "{:?}", spawner.tree_kind());
        child.exit.reap();
        assert!(!child.control.has_leftovers(), "{:?}", spawner.tree_kind());
    }
}

#[tokio::test]
async fn the_place_of_a_tree_goes_with_it() {
    let spawner = spawner();
    let mut child = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
    let line = std::fs::read_to_string(format!("/proc/{}/cgroup", child.control.pid()));
    let line = line.expect("it runs");
    let path = line.lines().find_map(|line| line.strip_prefix("0::"));
    match spawner.tree_kind() {
        TreeKind::Group => {
            let own = std::fs::read_to_string("/proc/self/cgroup").expect("we run");
            assert_eq!(line, own, "it is where we are");
        }
        TreeKind::Cgroup => {
            let path = path.expect("there is a cgroup");
            let (_, name) = path.rsplit_once("/outpost-").expect("one of ours");
            let own = own_cgroup().expect("there is a cgroup");
            let place = own.join(format!("outpost-{name}"));
            let grove = place.parent().expect("a parent").to_owned();
            assert!(place.is_dir(), "{}", place.display());
            child.control.settle();
            assert!(place.is_dir(), "not while somebody lives there");
            drop(child.stdin.take());
            finish(&mut child).await;
            assert!(!place.exists(), "settled");
            assert!(grove.exists());
            drop(child);
            drop(spawner);
            assert!(!grove.exists(), "{} is left", grove.display());
        }
    }
}

#[tokio::test]
async fn the_place_is_freed_without_being_asked() {
    let spawner = spawner();
    if let TreeKind::Group = spawner.tree_kind() {
        return; // There is no place to be freed.
    }
    let own = own_cgroup().expect("there is a cgroup");
    let mut child = start(&spawner, command(&["sleep", "1000"], PIPES)).await;
    let line = std::fs::read_to_string(format!("/proc/{}/cgroup", child.control.pid()));
    let line = line.expect("it runs");
    let (_, name) = line.rsplit_once("/outpost-").expect("one of ours");
    let place = own.join(format!("outpost-{}", name.trim_end()));
    let grove = place.parent().expect("a parent").to_owned();
    child.control.kill_tree().expect("it is killed");
    within("the exit", child.exit.wait()).await;
    // All handles go, in an order nobody promised.
    drop(spawner);
    drop(child);
    assert!(!grove.exists(), "{} is left", grove.display());
}

/// Found in a way of its own, to check what the crate has found.
fn own_cgroup() -> Option<PathBuf> {
    let cgroup = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = cgroup.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    let mut mounts = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let mount = mounts.find(|fields| fields.get(2) == Some(&"cgroup2"))?;
    Some(PathBuf::from(mount[1]).join(own))
}
