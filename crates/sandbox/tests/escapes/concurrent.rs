//! Concurrent sandboxes of one server, where one could tamper with another's mounts.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Stdio};

use outpost_sandbox::{Access, HostResources};
use rustix::process::{Resource, Rlimit};

use crate::fixture::{Fixture, text};

/// Starts a script that runs until its stdin ends, and waits until its sandbox is set up.
fn spawn(fixture: &Fixture, script: &str) -> (Child, HostResources) {
    let script = format!("echo ready; {script}");
    let argv = ["/bin/sh", "-c", &script].map(AsRef::as_ref);
    let (mut command, resources) = fixture.command(&argv);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("spawn");
    let mut line = [0; 6];
    let stdout = child.stdout.as_mut().expect("is piped");
    stdout.read_exact(&mut line).expect("read");
    (child, resources)
}

/// Closes stdin, waits for the end and returns stdout.
fn finish(child: Child) -> String {
    let output = child.wait_with_output().expect("wait");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn placeholder_of_another_sandbox_cannot_be_removed() {
    let mut fixture = Fixture::new();
    let (directory, workspace) = (fixture.outside(""), fixture.inside(""));
    let root = Path::new("/");
    fixture.plan_paths(&[(Access::Read, root), (Access::Write, &workspace)]);
    let script = "cat; mkdir .git 2>&1 || mkdir -p .git/hooks 2>&1 || echo kept";
    let (first, resources) = spawn(&fixture, script);
    let git = fixture.inside(".git");
    assert!(git.exists());
    fixture.plan_paths(&[(Access::Read, root), (Access::Write, &directory)]);
    fixture
        .script(&format!("rmdir {}", text(&git)))
        .assert_stderr("busy");
    let (from, to) = (git.clone(), fixture.inside("x"));
    fixture
        .sandboxed(&["rename", text(&from), text(&to)])
        .assert_fails("busy");
    let stdout = finish(first);
    assert!(stdout.ends_with("kept\n"), "{stdout}");
    drop(resources);
    assert!(!git.exists());
}

#[test]
fn externally_removed_placeholder_does_not_block_starts() {
    let mut fixture = Fixture::new();
    let workspace = fixture.inside("");
    let entries = [(Access::Read, Path::new("/")), (Access::Write, &workspace)];
    fixture.plan_paths(&entries);
    let (mut first, resources) = spawn(&fixture, "echo started; cat");
    // Until then bubblewrap may not have mounted over the placeholder, and would create it again.
    let stdout = first.stdout.as_mut().expect("is a pipe");
    stdout.read_exact(&mut [0; 8]).expect("started");
    let git = fixture.inside(".git");
    std::fs::remove_dir(&git).expect("remove directory");
    fixture.plan_paths(&entries);
    fixture
        .sandboxed(&["create", text(&fixture.inside("file"))])
        .assert_success();
    fixture
        .sandboxed(&["make-directory", text(&git)])
        .assert_fails("");
    finish(first);
    drop(resources);
    assert!(!git.exists());
}

/// Their locks could not be passed on to outlive the server.
#[test]
fn start_with_too_many_placeholders_is_refused() {
    let mut fixture = Fixture::new();
    let limit = Rlimit {
        current: Some(1024),
        maximum: rustix::process::getrlimit(Resource::Nofile).maximum,
    };
    rustix::process::setrlimit(Resource::Nofile, limit).expect("set limit");
    let workspace = fixture.inside("");
    let absent: Vec<_> = (0..300)
        .map(|number| fixture.inside(&number.to_string()))
        .collect();
    let mut entries = vec![
        (Access::Read, Path::new("/")),
        (Access::Write, workspace.as_path()),
    ];
    entries.extend(absent.iter().map(|path| (Access::Deny, path.as_path())));
    fixture.plan_paths(&entries);
    let refused = fixture.sandbox().prepare(&fixture.plan, fixture.program());
    let error = refused.expect_err("too many").to_string();
    assert!(error.contains("more than 256"), "{error}");
    let left = workspace.read_dir().expect("list").count();
    assert_eq!(left, 0);
    fixture.plan_paths(&entries[..200]);
    fixture.script("true").assert_success();
}
