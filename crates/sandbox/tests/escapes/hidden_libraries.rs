//! Plans that hide the helper's own program, dynamic loader and libraries.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use outpost_process::{Spawner, SpawnerOptions, TreeChoice};
use outpost_sandbox::policy::{Entry, FileSystem, Policy};
use outpost_sandbox::{Access, HelperProcess, Network, SandboxRequest, TurnKey, WorkerAccess};

use crate::fixture::{Fixture, text};

const LIMIT: Duration = Duration::from_secs(30);

/// The files that the helper consists of.
fn own_files() -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("read maps");
    let libraries = maps.lines().filter_map(|line| line.split_once('/'));
    let libraries = libraries.map(|(_, path)| PathBuf::from(format!("/{path}")));
    let mut files: Vec<_> = libraries
        .filter(|path| path.to_string_lossy().contains(".so"))
        .chain([crate::fixture::program()])
        .collect();
    files.sort();
    files.dedup();
    files
}

/// Starts a helper that may only use the workspace, and runs attempts in it.
fn with_worker(fixture: &Fixture, test: impl FnOnce(&dyn Fn(&[&str]) -> String)) {
    let workspace = fixture.inside("");
    let entry = Entry::path(workspace.clone(), Access::Write);
    let policy = Policy {
        file_system: FileSystem::restricted(vec![entry]),
        network: Network::Restricted,
        cwd: workspace.clone(),
        workspace_roots: vec![workspace],
    };
    let request = SandboxRequest {
        policy,
        tmpdir: None,
        listen: Vec::new(),
        client: TurnKey { peer: 0, client: 0 },
        floor: None,
    };
    let options = SpawnerOptions {
        trees: TreeChoice::Group,
        ..SpawnerOptions::default()
    };
    let spawner = Spawner::new(options).expect("spawner");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("runtime").block_on(async {
        let sandbox = fixture.sandbox();
        let prepared = sandbox.prepare_helper(request, WorkerAccess::Write, LIMIT);
        let prepared = prepared.await.expect("prepare");
        let started = prepared.start(&spawner, LIMIT).await.expect("start");
        let HelperProcess {
            mut child,
            resources,
            socket,
            ..
        } = started;
        let socket = std::fs::File::from(socket);
        test(&|arguments| {
            (&socket)
                .write_all(arguments.join("\0").as_bytes())
                .expect("send");
            let mut reply = [0; 4096];
            let length = (&socket).read(&mut reply).expect("receive");
            String::from_utf8_lossy(&reply[..length]).into_owned()
        });
        drop(socket);
        child.exit.wait().await;
        child.exit.reap();
        drop(resources.release());
    });
}

#[test]
fn worker_needs_nothing_of_its_plan_and_is_shown_nothing_for_it() {
    let fixture = Fixture::new();
    let granted = fixture.file(fixture.inside("granted"));
    let secret = fixture.file(fixture.outside("secret"));
    with_worker(&fixture, |attempt| {
        assert_eq!(attempt(&["read", text(&granted)]), "ok");
        assert_eq!(attempt(&["create", text(&fixture.inside("new"))]), "ok");
        let missing = "No such file or directory (os error 2)";
        assert_eq!(attempt(&["read", text(&secret)]), missing);
        for path in own_files() {
            assert_eq!(attempt(&["read", text(&path)]), missing, "{path:?}");
        }
        for path in ["/lib64", "/lib", "/usr", "/etc"] {
            assert_eq!(attempt(&["list", path]), missing, "{path}");
        }
        // Neither the helper nor bubblewrap's first process has them open.
        for process in ["self", "1"] {
            for number in 0..64 {
                let opened = format!("/proc/{process}/fd/{number}");
                assert_ne!(attempt(&["is-file", &opened]), "ok", "{opened}");
            }
        }
    });
    assert!(fixture.inside("new").exists());
}
