//! Starts that fail because a resource is exhausted. In its own program, because limits are
//! process-wide.

use std::fs::File;
use std::path::PathBuf;

#[path = "behaviour/support.rs"]
#[expect(dead_code, reason = "these tests need only a part of it")]
mod support;

use outpost_process::{Exit, SpawnErrorKind, Spawner, SpawnerOptions, TreeChoice, TreeKind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::*;

/// A lowered limit, restored on drop.
struct LoweredLimit(Resource, Rlimit);

impl LoweredLimit {
    fn all_but(resource: Resource, left: u64) -> Self {
        let before = getrlimit(resource);
        let after = Rlimit {
            current: Some(left),
            maximum: before.maximum,
        };
        setrlimit(resource, after).expect("less is always granted");
        Self(resource, before)
    }
}

impl Drop for LoweredLimit {
    fn drop(&mut self) {
        setrlimit(self.0, self.1).expect("it was granted before");
    }
}

/// The number of open descriptors, without reserved cgroups and subreapers' sockets.
fn open() -> u64 {
    let entries = std::fs::read_dir("/proc/self/fd").expect("there is a proc");
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    let kept = |path: &str| path.contains("/outpost-") || path.starts_with("socket:");
    let counted = |path: &PathBuf| !kept(&path.to_string_lossy());
    targets.filter(counted).count() as u64
}

/// Opens descriptors until only `space` more are possible.
fn fill(space: usize) -> Vec<File> {
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    assert!(files.len() > space, "the limit leaves too little");
    files.truncate(files.len() - space);
    files
}

/// One test for both limits, because they are process-wide.
#[tokio::test]
async fn exhaustion_fails_only_the_start() {
    descriptors_run_out(TreeChoice::Auto).await;
    descriptors_run_out(TreeChoice::Subreaper).await;
    processes_run_out().await;
    owner_of_a_cgroup_is_unknown_without_descriptors();
}

async fn descriptors_run_out(trees: TreeChoice) {
    let limit = getrlimit(Resource::Nofile);
    let most = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    let options = SpawnerOptions {
        child_open_files: Some((most(limit.current), most(limit.maximum))),
        trees,
        subreaper: (trees == TreeChoice::Subreaper).then(reaper_command),
        ..SpawnerOptions::default()
    };
    let spawner = Spawner::new(options).expect("a spawner starts");
    for stdio in [PIPES, PIPES_AND_STDIN, PTY] {
        run(&spawner, command(&["true"], stdio)).await;
        let before = open();
        let mut failures = 0;
        let mut refusals = Vec::new();
        // With space for 0, 1, … descriptors every step fails once, until there are enough.
        for space in 0..64 {
            let taken = LoweredLimit::all_but(Resource::Nofile, before + 100);
            let filled = fill(space);
            let spawned = within("the answer", spawner.spawn(command(&["true"], stdio))).await;
            drop(filled);
            drop(taken);
            match spawned {
                Ok(mut child) => {
                    assert_eq!(finish(&mut child).await.exit, Exit::Code(0));
                    break;
                }
                Err(error) => {
                    assert_eq!(error.raw_os_error(), Some(24), "{error}");
                    refusals.push(error.kind());
                    failures += 1;
                }
            }
            eventually("the descriptors", || open() == before).await;
        }
        assert!((2..60).contains(&failures), "{stdio:?}: {refusals:?}");
        assert!(!refusals.contains(&SpawnErrorKind::NotExecutable));
        let finished = run(&spawner, command(&["true"], stdio)).await;
        assert_eq!(finished.exit, Exit::Code(0), "afterwards all is well");
    }
}

fn owner_of_a_cgroup_is_unknown_without_descriptors() {
    let spawner = spawner();
    if spawner.tree_kind() != TreeKind::Cgroup {
        return;
    }
    let taken = LoweredLimit::all_but(Resource::Nofile, open() + 100);
    let filled = fill(0);
    let owned = spawner.owns_cgroup(1);
    drop(filled);
    drop(taken);
    let error = owned.expect_err("the cgroups can't be listed");
    assert_eq!(error.raw_os_error(), Some(24), "{error}");
}

async fn processes_run_out() {
    let spawner = spawner();
    let taken = LoweredLimit::all_but(Resource::Nproc, 1);
    let spawned = within("the answer", spawner.spawn(command(&["true"], PIPES))).await;
    drop(taken);
    if rustix::process::geteuid().is_root() {
        spawned.expect("root isn't limited");
    } else {
        let error = spawned.expect_err("there is one already");
        assert_eq!(error.kind(), SpawnErrorKind::Clone);
        assert_eq!(error.raw_os_error(), Some(11), "{error}");
    }
    let finished = run(&spawner, command(&["true"], PIPES)).await;
    assert_eq!(finished.exit, Exit::Code(0), "afterwards all is well");
}
