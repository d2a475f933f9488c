//! Process trees of each kind.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use outpost_process::{Child, Exit, Signal, Spawner, SpawnerOptions, Stdio, TreeKind};

use crate::support::*;

/// Starts a daemon in its own session whose parent has exited when its pid is printed.
const DAEMON: &str = "\
    daemon=$(setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'); echo daemon $daemon; ";

#[tokio::test]
async fn auto_picks_the_best_kind() {
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
        subreaper: Some(reaper_command()),
        ..SpawnerOptions::default()
    };
    let best = match possible {
        true => TreeKind::Cgroup,
        false => TreeKind::Subreaper,
    };
    let spawner = Spawner::new(options).expect("a spawner starts");
    assert_eq!(spawner.tree_kind(), best);
}

async fn daemon_is_killed(stdio: Stdio) {
    let spawner = spawner();
    let mut child = start(&spawner, sh(&format!("{DAEMON} sleep 1000"), stdio)).await;
    let daemon = expect_number(&mut child.outputs[0], "daemon ").await;
    let _end = KillOnDrop(daemon);
    assert!(child.control.has_leftovers());
    child.control.kill_tree().expect("it is killed");
    assert_eq!(within("the exit", child.exit.wait()).await, Exit::Signal(9));
    match spawner.tree_kind() {
        TreeKind::Cgroup | TreeKind::Subreaper => gone(daemon).await,
        TreeKind::Group => assert!(is_running(daemon), "known limit of the kind"),
    }
}

#[tokio::test]
async fn daemon_is_killed_on_pipes() {
    daemon_is_killed(PIPES).await;
}

#[tokio::test]
async fn daemon_is_killed_on_a_terminal() {
    daemon_is_killed(PTY).await;
}

#[tokio::test]
async fn leftover_daemon_is_killed_after_exit() {
    let spawner = spawner();
    let mut child = start(&spawner, sh(DAEMON, PIPES)).await;
    let daemon = expect_number(&mut child.outputs[0], "daemon ").await;
    let _end = KillOnDrop(daemon);
    let finished = finish(&mut child).await;
    assert_eq!(finished.exit, Exit::Code(0));
    assert!(is_running(daemon), "a natural exit kills nothing");
    match spawner.tree_kind() {
        TreeKind::Cgroup | TreeKind::Subreaper => {
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
async fn group_members_are_killed_after_exit() {
    for spawner in spawner_of_each_kind() {
        let script = "sleep 1000 >/dev/null 2>&1 & echo left $!";
        let mut child = start(&spawner, sh(script, PIPES)).await;
        let left = expect_number(&mut child.outputs[0], "left ").await;
        let _end = KillOnDrop(left);
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
async fn exited_child_has_no_leftovers() {
    for spawner in spawner_of_each_kind() {
        let mut child = start(&spawner, command(&["true"], PIPES)).await;
        within("the exit", child.exit.wait()).await;
        assert!(!child.control.has_leftovers(), "{:?}", spawner.tree_kind());
        child.exit.reap();
        assert!(!child.control.has_leftovers(), "{:?}", spawner.tree_kind());
    }
}

#[tokio::test]
async fn cgroup_is_released_with_its_tree() {
    let spawner = spawner();
    let mut child = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
    let Some(place) = place(&spawner, &child) else {
        return;
    };
    let root = place.parent().expect("a parent").to_owned();
    assert!(place.is_dir(), "{}", place.display());
    child.control.release_tree();
    assert!(place.is_dir(), "not while somebody lives there");
    drop(child.stdin.take());
    finish(&mut child).await;
    // It is kept for reuse, empty.
    let members = std::fs::read_to_string(place.join("cgroup.procs"));
    assert_eq!(members.unwrap_or_default(), "");
    assert!(root.exists());
    drop(child);
    drop(spawner);
    assert!(!root.exists(), "{} is left", root.display());
}

/// A socket that was created in a cgroup can outlive it, in another process.
#[tokio::test]
async fn cgroups_of_children_are_owned_even_after_their_removal() {
    let spawner = spawner();
    let mut child = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
    let Some(place) = place(&spawner, &child) else {
        return;
    };
    let id = |path: &Path| std::fs::metadata(path).expect("it is there").ino();
    let owns = |id| spawner.owns_cgroup(id).expect("the cgroups are listed");
    // A cgroup with another one in it is removed and not reused.
    let nested = place.join("nested");
    std::fs::create_dir(&nested).expect("it is made");
    let own = id(&place);
    assert!(owns(own) && owns(id(&nested)));
    assert!(!owns(id(&own_cgroup().expect("there are cgroups"))));
    drop(child.stdin.take());
    finish(&mut child).await;
    drop(child);
    assert!(!place.exists());
    assert!(owns(own));
}

#[tokio::test]
async fn cgroup_is_released_on_drop() {
    let spawner = spawner();
    let mut child = start(&spawner, command(&["sleep", "1000"], PIPES)).await;
    let Some(place) = place(&spawner, &child) else {
        return;
    };
    let root = place.parent().expect("a parent").to_owned();
    child.control.kill_tree().expect("it is killed");
    within("the exit", child.exit.wait()).await;
    // Drop all handles, in any order.
    drop(spawner);
    drop(child);
    assert!(!root.exists(), "{} is left", root.display());
}

#[tokio::test]
async fn populated_cgroup_is_removed_later() {
    let spawner = spawner();
    let script = "sleep 1000 >/dev/null 2>&1 & echo left $!";
    let mut child = start(&spawner, sh(script, PIPES)).await;
    let left = expect_number(&mut child.outputs[0], "left ").await;
    let stranger = KillOnDrop(left);
    finish(&mut child).await;
    let place = cgroup_of(&spawner, left);
    drop(child.into_inner());
    assert!(is_running(left), "handles that go kill nothing");
    let Some(place) = place else {
        return;
    };
    assert!(place.is_dir(), "{}", place.display());
    drop(stranger);
    gone(left).await;
    // Every start removes abandoned cgroups.
    run(&spawner, command(&["true"], PIPES)).await;
    let again = run(&spawner, command(&["true"], PIPES));
    assert_eq!(again.await.exit, Exit::Code(0));
    eventually("the removal", || !place.exists()).await;
}

/// A directory like that of another server, with a process in it.
struct OtherServer {
    root: PathBuf,
    child: Started,
}

impl OtherServer {
    /// Returns `None` if this host has no cgroups. `mark` is the identity of the server.
    async fn start(name: &str, mark: Option<&str>) -> Option<Self> {
        if spawner().tree_kind() != TreeKind::Cgroup {
            return None; // A killed server's processes can't be told from others.
        }
        let root = own_cgroup()?.join(format!("outpost-{name}-{}", std::process::id()));
        std::fs::create_dir(&root).expect("it is made");
        if let Some(mark) = mark {
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(&root, "user.outpost.server", mark.as_bytes(), flags)
                .expect("it is marked");
        }
        std::fs::create_dir(root.join("0")).expect("it is made");
        let child = start(&group_spawner(), command(&["sleep", "1000"], PIPES)).await;
        let number = child.control.pid().to_string();
        std::fs::write(root.join("0/cgroup.procs"), number).expect("it is moved");
        Some(Self { root, child })
    }

    /// Whether the process survives the start of a spawner.
    fn survives(&self) -> bool {
        drop(spawner());
        self.root.exists() && is_running(pid(&self.child))
    }
}

impl Drop for OtherServer {
    fn drop(&mut self) {
        let _ = self.child.control.kill_tree();
        let _ = std::fs::write(self.root.join("cgroup.kill"), "1");
        for path in [self.root.join("0"), self.root.clone()] {
            while path.exists() && std::fs::remove_dir(&path).is_err() {
                std::thread::yield_now();
            }
        }
    }
}

/// The mark of this process, or of one with the same pid that was started earlier.
fn mark(earlier: u64) -> String {
    let own = std::process::id();
    let fields = stat(own.cast_signed()).expect("we run");
    let started: u64 = fields
        .split(' ')
        .nth(19)
        .expect("a time")
        .parse()
        .expect("a number");
    let namespace = std::fs::metadata("/proc/self/ns/pid")
        .expect("a namespace")
        .ino();
    format!("{own} {} {namespace}", started - earlier)
}

#[tokio::test]
async fn cgroup_of_killed_server_is_removed() {
    let Some(mut other) = OtherServer::start("dead", Some(&mark(1))).await else {
        return;
    };
    // A lock that a child holds does not protect it.
    let lock = std::fs::File::open(&other.root).expect("it is there");
    lock.lock().expect("it is locked");
    drop(spawner());
    let exit = within("the exit", other.child.exit.wait()).await;
    assert_eq!(exit, Exit::Signal(9));
    // Another spawner may have found it and still be removing it.
    eventually("the removal", || !other.root.exists()).await;
}

#[tokio::test]
async fn cgroup_of_living_server_is_left_alone() {
    if let Some(other) = OtherServer::start("living", Some(&mark(0))).await {
        assert!(other.survives());
    }
}

#[tokio::test]
async fn cgroup_without_mark_is_left_alone() {
    if let Some(other) = OtherServer::start("strange", None).await {
        assert!(other.survives());
    }
}

#[tokio::test]
async fn removed_cgroup_root_is_created_again() {
    let spawner = spawner();
    let mut child = start(&spawner, command(&["cat"], PIPES_AND_STDIN)).await;
    let Some(place) = place(&spawner, &child) else {
        return;
    };
    drop(child.stdin.take());
    finish(&mut child).await;
    // Another program removes everything that is empty, also what is held ready for the next start.
    let root = place.parent().expect("a parent");
    eventually("the removal", || {
        for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
            let _ = std::fs::remove_dir(entry.path());
        }
        let _ = std::fs::remove_dir(root);
        !root.exists()
    })
    .await;
    for _ in 0..4 {
        let finished = run(&spawner, command(&["true"], PIPES)).await;
        assert_eq!(finished.exit, Exit::Code(0));
    }
}

/// The cgroup of a child, if it has its own.
fn place(spawner: &Spawner, child: &Child) -> Option<PathBuf> {
    cgroup_of(spawner, pid(child))
}

fn cgroup_of(spawner: &Spawner, pid: i32) -> Option<PathBuf> {
    let cgroup = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("it runs");
    match spawner.tree_kind() {
        TreeKind::Subreaper | TreeKind::Group => {
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

/// Finds the cgroup independently of the code under test.
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
