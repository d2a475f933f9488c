//! Tests sandboxes requested through the Rust API, enforced by a server and locally.

use std::{fs, path::Path};

use outpost_client::{
    Executor, FileErrorKind, HelperCommand, LocalExecutor, LocalOptions, Sandbox, Start,
};
use outpost_testkit::{Server, deadline};

use super::{connect, script};
use crate::outpost;

/// A local executor. The test binary can't be the sandbox helper, so the built program is.
fn local() -> LocalExecutor {
    let sandbox_helper = HelperCommand {
        program: outpost().binary().to_owned(),
        args: vec!["confine".to_owned()],
        ..HelperCommand::default()
    };
    let options = LocalOptions {
        sandbox_helper: Some(sandbox_helper),
        ..LocalOptions::default()
    };
    LocalExecutor::new(options).expect("an executor")
}

/// Returns the exit code and whether the sandbox denied something.
async fn run(executor: &dyn Executor, start: Start) -> (i32, bool) {
    let process = executor.start(start).await.expect("spawn");
    let exit = deadline::expect_soon("its exit", process.wait()).await;
    let exit = exit.expect("reported");
    (exit.code, exit.sandbox_denied)
}

async fn check(executor: &dyn Executor, server: &Server, dir: &Path) {
    let support = executor.environment().await.expect("reported").sandbox;
    assert_eq!(support.expect("reported").reason, None);
    let start = |line: &str| script(server, line).cwd(dir);
    let workspace = || Sandbox::read_only(dir).write(dir);
    let granted = start("echo x > made").sandbox(workspace());
    assert_eq!(run(executor, granted).await, (0, false));
    assert!(dir.join("made").exists());
    for (line, sandbox) in [
        ("echo x > made", Sandbox::read_only(dir)),
        ("mkdir .git", workspace()),
        ("cat secret", workspace().deny(dir.join("secret"))),
        ("cat secret", workspace().deny_matching("sec*")),
    ] {
        let (code, _) = run(executor, start(line).sandbox(sandbox)).await;
        assert_ne!(code, 0, "{line}");
    }
    let denied = start("echo x > made").sandbox(Sandbox::read_only(dir));
    let (code, denied_by_sandbox) = run(executor, denied).await;
    assert!(code != 0 && denied_by_sandbox, "{code} {denied_by_sandbox}");
    let read = start("cat secret").sandbox(Sandbox::minimal(dir).read(dir));
    assert_eq!(run(executor, read).await, (0, false));
    // A path that isn't granted doesn't exist inside.
    let line = format!("test ! -e {}", dir.display());
    let minimal = start(&line).cwd("/usr").sandbox(Sandbox::minimal("/usr"));
    assert_eq!(run(executor, minimal).await, (0, false));
    fs::remove_file(dir.join("made")).expect("created");
}

#[tokio::test(flavor = "multi_thread")]
async fn sandbox_works_locally_and_remotely() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("secret"), "x").expect("a file");
    let server = outpost().start().await;
    let local = local();
    check(&local, &server, dir.path()).await;
    local.close().await.expect("it ends");
    let remote = connect(&server.urls()[0]).await.expect("it exists");
    check(&remote, &server, dir.path()).await;
    remote.close().await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_sandboxed_locally_and_remotely() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = outpost().start().await;
    let local = local();
    check_files(&local, dir.path()).await;
    local.close().await.expect("it ends");
    let remote = connect(&server.urls()[0]).await.expect("it exists");
    check_files(&remote, dir.path()).await;
    remote.close().await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn placeholders_are_invisible_locally_and_remotely() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = outpost().start().await;
    let remote = connect(&server.urls()[0]).await.expect("it exists");
    for executor in [&local() as &dyn Executor, &remote] {
        let sandbox = Sandbox::read_only(dir.path()).write(dir.path());
        let start = script(&server, "exec sleep 1000").cwd(dir.path());
        let process = executor.start(start.sandbox(sandbox)).await;
        let _process = process.expect("spawn");
        let git = dir.path().join(".git");
        assert!(git.exists());
        let missing = executor.files().metadata(&git).await;
        let error = missing.expect_err("it doesn't exist");
        assert_eq!(error.kind(), FileErrorKind::NotFound);
        let listed = executor.files().read_directory(dir.path()).await;
        assert!(listed.expect("it exists").is_empty());
        executor.close().await.expect("it ends");
    }
}

async fn check_files(executor: &dyn Executor, dir: &Path) {
    let granted = dir.join("granted");
    fs::create_dir(&granted).expect("a directory");
    fs::write(dir.join("outside"), "old").expect("a file");
    std::os::unix::fs::symlink("../outside", granted.join("link")).expect("a link");
    let sandbox = Sandbox::read_only(&granted).write(&granted);
    let files = executor.files().sandboxed(sandbox.into());
    files
        .write(granted.join("made"), "new")
        .await
        .expect("granted");
    let made = files.read(granted.join("made")).await.expect("it exists");
    assert_eq!(&made[..], b"new");
    for path in [dir.join("outside"), granted.join("link")] {
        let free = executor.files().write(&path, "old").await;
        free.expect("written unsandboxed");
        let error = files.write(&path, "new").await.expect_err("not granted");
        assert!(
            error.to_string().contains("Read-only file system"),
            "{error}"
        );
    }
    files
        .create(granted.join(".git"))
        .await
        .expect_err("protected");
    assert!(!granted.join(".git").exists(), "the placeholder is left");
    assert_eq!(fs::read(dir.join("outside")).expect("a file"), b"old");
    fs::remove_dir_all(&granted).expect("it exists");
}
