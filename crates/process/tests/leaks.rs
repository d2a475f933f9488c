//! Starts leak no descriptor, zombie or cgroup. In its own program, because it counts open descriptors.

#[path = "behaviour/support.rs"]
#[expect(dead_code, reason = "this test needs only a part of it")]
mod support;

use outpost_process::{Stdio, TreeKind};
use support::*;

/// The targets of open descriptors: first the reserved cgroups and subreapers, then the rest.
fn open_descriptors() -> (Vec<String>, Vec<String>) {
    let entries = std::fs::read_dir("/proc/self/fd").expect("there is a proc");
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    let mut open: Vec<_> = targets
        .map(|path| path.display().to_string())
        .filter(|path| !path.ends_with("/fd"))
        // The inode number differs.
        .map(|path| path.split(':').next().unwrap_or_default().to_owned())
        .collect();
    open.sort();
    let cgroup_of = |path: &String| path.contains("/outpost-") && path.matches('/').count() > 1;
    // Each subreaper has a socket.
    open.into_iter()
        .partition(|path| cgroup_of(path) || path == "socket")
}

/// All children except the subreaper factory.
fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc")
        .expect("there is a proc")
        .flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let name = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm"));
    numbers
        .filter(|pid| !name(pid).is_ok_and(|name| name == "reaper-factory\n"))
        .filter_map(stat)
        .filter(|stat| stat.split(' ').nth(1) == Some(&own))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousand_starts_leak_nothing() {
    let sockets = open_descriptors().0.len();
    for spawner in spawner_of_each_kind() {
        // Warm-up: fills caches, such as buffers and spare cgroups.
        start_many(&spawner, 20).await;
        let (_, before) = open_descriptors();
        start_many(&spawner, 500).await;
        let (ready, after) = open_descriptors();
        assert_eq!(after, before, "{:?}", spawner.tree_kind());
        match spawner.tree_kind() {
            // The spawner's directory, and for each of its two threads a cgroup and its `cgroup.kill`.
            TreeKind::Cgroup => assert!(ready.len() <= 5 + sockets, "{ready:?}"),
            // The factory, one for each thread, and idle ones.
            TreeKind::Subreaper => assert!(ready.len() <= 1 + 2 + 16 + sockets, "{ready:?}"),
            TreeKind::Group => assert_eq!(ready.len(), sockets, "{ready:?}"),
        }
        assert_eq!(children(), Vec::<String>::new());
    }
}

async fn start_many(spawner: &outpost_process::Spawner, count: usize) {
    let mut tasks = tokio::task::JoinSet::new();
    for turn in 0..16 {
        let spawner = spawner.clone();
        tasks.spawn(async move {
            for round in 0..count / 16 + 1 {
                start_one(&spawner, turn + round).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("the task completes");
    }
}

/// Runs one of several kinds of start, successful and failing.
async fn start_one(spawner: &outpost_process::Spawner, which: usize) {
    let stdio: Stdio = [PIPES, PIPES_AND_STDIN, PTY][which % 3];
    match which / 3 % 5 {
        0 => {
            let spawned = spawner.spawn(command(&["/no/such/program"], stdio)).await;
            spawned.expect_err("the program does not exist");
        }
        1 => {
            let mut child = start(spawner, command(&["sleep", "1000"], stdio)).await;
            child.control.kill_tree().expect("it is killed");
            finish(&mut child).await;
        }
        _ => {
            let finished = run(spawner, sh("echo hello", stdio)).await;
            assert_eq!(finished.stdout.trim_end(), "hello");
        }
    }
}
