//! Descriptors that a sandboxed program is passed.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use outpost_process::{Command, ResourceLimits, Spawner, SpawnerOptions, Stdio};
use outpost_sandbox::policy::{Entry, FileSystem, Policy, SpecialPath};
use outpost_sandbox::{Access, LaunchError, Network, PASSED_FD, SandboxRequest, TurnKey};

use crate::fixture::Fixture;
use crate::landlock::levels;

const LIMIT: Duration = Duration::from_secs(30);

/// Runs a shell with two descriptors, the ends of a pipe, and returns its output.
async fn run(fixture: &Fixture, entries: Vec<Entry>) -> String {
    let (read, write) = std::io::pipe().expect("pipe");
    let (first, second) = (PASSED_FD, PASSED_FD + 1);
    let script = format!(
        "echo passed >/proc/self/fd/{second}; head -n 1 /proc/self/fd/{first}; ls -1v /proc/self/fd"
    );
    let command = Command {
        argv: ["/bin/sh", "-c", &script].map(Into::into).into(),
        arg0: None,
        cwd: fixture.inside(""),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        stdio: Stdio::Pipes { stdin: false },
        limits: ResourceLimits::default(),
        passed: vec![Arc::new(read.into()), Arc::new(write.into())],
        wrapper: None,
    };
    let request = SandboxRequest {
        policy: Policy {
            file_system: FileSystem::restricted(entries),
            network: Network::Restricted,
            cwd: fixture.inside(""),
            workspace_roots: Vec::new(),
        },
        tmpdir: None,
        listen: Vec::new(),
        client: TurnKey { peer: 0, client: 0 },
        floor: None,
    };
    let spawner = Spawner::new(SpawnerOptions::default()).expect("spawner");
    let prepared = fixture.sandbox().prepare_process(request, command, LIMIT);
    let prepared = prepared.await.expect("prepare");
    let started = prepared.start(&spawner, LIMIT, pending::<LaunchError>());
    let (mut child, resources) = started.await.expect("start");
    child.exit.wait().await;
    let outputs = child.outputs.iter_mut().map(|one| one.drain().concat());
    let output = outputs.collect::<Vec<_>>().concat();
    child.exit.reap();
    drop(resources.release().await);
    String::from_utf8(output).expect("text")
}

#[tokio::test]
async fn program_gets_passed_descriptors_and_no_others() {
    let everything = || Entry::special(SpecialPath::Root, Access::Read);
    let maps = std::fs::read_to_string("/proc/self/maps").expect("read maps");
    // A library of the helper that the program does not need. If it is hidden, bubblewrap is passed it.
    let library = maps.lines().find(|line| line.contains("/libgcc_s."));
    let library = library.and_then(|line| line.split_once('/'));
    let library = library.map(|(_, path)| Entry::path(format!("/{path}"), Access::Deny));
    // Descriptor 3 is the listed directory.
    let expected = format!("passed\n0\n1\n2\n3\n{PASSED_FD}\n{}\n", PASSED_FD + 1);
    let fixture = Fixture::new();
    let hidden = [everything()].into_iter().chain(library).collect();
    assert_eq!(run(&fixture, hidden).await, expected);
    for level in levels() {
        let fixture = Fixture::new().at(level);
        assert_eq!(run(&fixture, vec![everything()]).await, expected);
    }
}
