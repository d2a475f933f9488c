//! Trees as the host keeps them together, and what their kind promises.

use std::path::PathBuf;

use outpost_process::{Child, Exit, Signal, Spawner, SpawnerOptions, Stdio, TreeKind};

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
    let spawner = Spawner::new(SpawnerOptions::default()).expect("a spawner starts");
    assert_eq!(spawner.tree_kind(), best);
    let options = SpawnerOptions {
        keeper: Some(keeper_command()),
        ..SpawnerOptions::default()
    };
    let best = match possible {
        true => TreeKind::Cgroup,
        false => TreeKind::Keeper,
    };
    let spawner = Spawner::new(options).expect("a spawner starts");
    assert_eq!(spawner.tree_kind(), best);
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
        TreeKind::Cgroup | TreeKind::Keeper => gone(daemon).await,
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
        TreeKind::Cgroup | TreeKind::Keeper => {
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
    for spawner in spawner_of_each_kind() {
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
    for spawner in spawner_of_each_kind() {
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
    let Some(place) = place(&spawner, &child) else {
        return;
    };
    let grove = place.parent().expect("a parent").to_owned();
    assert!(place.is_dir(), "{}", place.display());
    child.control.settle();
    assert!(place.is_dir(), "not while somebody lives there");
    drop(child.stdin.take());
    finish(&mut child).await;
    // It is kept for somebody else to come, empty.
    let members = std::fs::read_to_string(place.join("cgroup.procs"));
    assert_eq!(members.unwrap_or_default(), "");
    assert!(grove.exists());
    drop(child);
    drop(spawner);
    assert!(!grove.exists(), "{} is left", grove.display());
}

#[tokio::test]
async fn the_place_is_freed_without_being_asked() {
    let spawner = spawner();
    let mut child = start(&spawner, command(&["sleep", "1000"], PIPES)).await;
    let Some(place) = place(&spawner, &child) else {
        return;
    };
    let grove = place.parent().expect("a parent").to_owned();
    child.control.kill_tree().expect("it is killed");
    within("the exit", child.exit.wait()).await;
    // All handles go, in an order nobody promised.
    drop(spawner);
    drop(child);
    assert!(!grove.exists(), "{} is left", grove.display());
}

#[tokio::test]
async fn a_place_somebody_lives_in_is_freed_later() {
    let spawner = spawner();
    let script = "sleep 1000 >/dev/null 2>&1 & echo left $!";
    let mut child = start(&spawner, sh(script, PIPES)).await;
    let left = expect_number(&mut child.outputs[0], "left ").await;
    let stranger = Stranger(left);
    finish(&mut child).await;
    let place = in_grove(&spawner, left);
    drop(child.into_inner());
    assert!(is_running(left), "handles that go kill nothing");
    let Some(place) = place else {
        return;
    };
    assert!(place.is_dir(), "{}", place.display());
    drop(stranger);
    gone(left).await;
    // Every start looks after what was left.
    run(&spawner, command(&["true"], PIPES)).await;
    let again = run(&spawner, command(&["true"], PIPES));
    assert_eq!(again.await.exit, Exit::Code(0));
    eventually("the removal", || !place.exists()).await;
}

#[tokio::test]
async fn what_a_killed_server_left_behind_ends_with_the_next_start() {
    let spawner = spawner();
    if spawner.tree_kind() != TreeKind::Cgroup {
        return; // A killed server's processes can't be told from others.
    }
    // Such a server's directory: locked as long as it lives.
    let name = format!("outpost-test-{}", std::process::id());
    let grove = own_cgroup().expect("there is a cgroup").join(name);
    std::fs::create_dir(&grove).expect("it is made");
    let lock = std::fs::File::open(&grove).expect("it is there");
    lock.lock().expect("it is locked");
    std::fs::create_dir(grove.join("0")).expect("it is made");
    let mut child = start(&group_spawner(), command(&["sleep", "1000"], PIPES)).await;
    let number = child.control.pid().to_string();
    std::fs::write(grove.join("0/cgroup.procs"), number).expect("it is moved");

    drop(crate::support::spawner());
    assert!(
        grove.exists() && is_running(pid(&child)),
        "not while the server lives"
    );
    drop(lock);
    drop(crate::support::spawner());
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(9));
    // It may be another start that found it, and that is still at it.
    eventually("the removal", || !grove.exists()).await;
}

/// The place of a child, where there is such a thing; otherwise it is where we are.
fn place(spawner: &Spawner, child: &Child) -> Option<PathBuf> {
    in_grove(spawner, pid(child))
}

fn in_grove(spawner: &Spawner, pid: i32) -> Option<PathBuf> {
    let cgroup = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("it runs");
    match spawner.tree_kind() {
        TreeKind::Keeper | TreeKind::Group => {
            let own = std::fs::read_to_string("/proc/self/cgroup").expect("we run");
            assert_eq!(cgroup, own);
            None
        }
        TreeKind::Cgroup => {
            let mut lines = cgroup.lines();
            let line = lines.find_map(|line| line.strip_prefix("0::"));
            let (_, name) = line?.rsplit_once("/outpost-").expect("one of ours");
            Some(own_cgroup()?.join(format!("outpost-{name}")))
        }
    }
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
