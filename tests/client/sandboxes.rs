//! A sandbox said in Rust, enforced by a server and in this program alike.

use std::{fs, path::Path};

use outpost_client::{FileErrorKind, Local, LocalOptions, Place, Sandbox, StageCommand, Start};
use outpost_testkit::{Server, patience};

use super::{connect, script};
use crate::outpost;

/// What this program can't be itself: the built one stands in for it.
fn local() -> Local {
    let stages = StageCommand {
        program: outpost().binary().to_owned(),
        args: vec!["confine".to_owned()],
    };
    let options = LocalOptions {
        stages: Some(stages),
        ..LocalOptions::default()
    };
    Local::new(options).expect("a place")
}

/// The exit code of a script, and whether the sandbox was in its way.
async fn ended(place: &dyn Place, start: Start) -> (i32, bool) {
    let process = place.start(start).await.expect("it starts");
    let exit = patience::soon("its end", process.wait()).await;
    let exit = exit.expect("it is told");
    (exit.code, exit.sandbox_denied)
}

async fn check(place: &dyn Place, server: &Server, folder: &Path) {
    let told = place.environment().await.expect("it is told").sandbox;
    assert_eq!(told.expect("it is told").reason, None);
    let start = |line: &str| script(server, line).cwd(folder);
    let workspace = || Sandbox::read_only(folder).write(folder);
    let granted = start("echo x > made").sandbox(workspace());
    assert_eq!(ended(place, granted).await, (0, false));
    assert!(folder.join("made").exists());
    for (line, sandbox) in [
        ("echo x > made", Sandbox::read_only(folder)),
        ("mkdir .git", workspace()),
        ("cat secret", workspace().deny(folder.join("secret"))),
        ("cat secret", workspace().deny_matching("sec*")),
    ] {
        let (code, _) = ended(place, start(line).sandbox(sandbox)).await;
        assert_ne!(code, 0, "{line}");
    }
    let denied = start("echo x > made").sandbox(Sandbox::read_only(folder));
    let (code, told) = ended(place, denied).await;
    assert!(code != 0 && told, "{code} {told}");
    let read = start("cat secret").sandbox(Sandbox::minimal(folder).read(folder));
    assert_eq!(ended(place, read).await, (0, false));
    // What isn't named isn't even there.
    let line = format!("test ! -e {}", folder.display());
    let elsewhere = start(&line).cwd("/usr").sandbox(Sandbox::minimal("/usr"));
    assert_eq!(ended(place, elsewhere).await, (0, false));
    fs::remove_file(folder.join("made")).expect("it was made");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_the_same_here_and_there() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("secret"), "x").expect("a file");
    let server = outpost().start().await;
    let local = local();
    check(&local, &server, folder.path()).await;
    local.close().await.expect("it ends");
    let remote = connect(&server.urls()[0]).await.expect("it is there");
    check(&remote, &server, folder.path()).await;
    remote.close().await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_confined_here_and_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = outpost().start().await;
    let local = local();
    check_files(&local, folder.path()).await;
    local.close().await.expect("it ends");
    let remote = connect(&server.urls()[0]).await.expect("it is there");
    check_files(&remote, folder.path()).await;
    remote.close().await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_a_name_absent_is_seen_neither_here_nor_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = outpost().start().await;
    let remote = connect(&server.urls()[0]).await.expect("it is there");
    for place in [&local() as &dyn Place, &remote] {
        let sandbox = Sandbox::read_only(folder.path()).write(folder.path());
        let start = script(&server, "exec sleep 1000").cwd(folder.path());
        let process = place.start(start.sandbox(sandbox)).await;
        let _process = process.expect("it starts");
        let git = folder.path().join(".git");
        assert!(git.exists());
        let missing = place.files().metadata(&git).await;
        let error = missing.expect_err("it isn't there");
        assert_eq!(error.kind(), FileErrorKind::NotFound);
        let listed = place.files().read_directory(folder.path()).await;
        assert!(listed.expect("it is there").is_empty());
        place.close().await.expect("it ends");
    }
}

async fn check_files(place: &dyn Place, folder: &Path) {
    let granted = folder.join("granted");
    fs::create_dir(&granted).expect("a folder");
    fs::write(folder.join("outside"), "old").expect("a file");
    std::os::unix::fs::symlink("../outside", granted.join("link")).expect("a link");
    let sandbox = Sandbox::read_only(&granted).write(&granted);
    let files = place.files().confined(sandbox.into());
    files
        .write(granted.join("made"), "new")
        .await
        .expect("it is granted");
    let made = files.read(granted.join("made")).await.expect("it is there");
    assert_eq!(&made[..], b"new");
    for path in [folder.join("outside"), granted.join("link")] {
        let free = place.files().write(&path, "old").await;
        free.expect("nobody is in the way");
        let error = files
            .write(&path, "new")
            .await
            .expect_err("it isn't granted");
        assert!(
            error.to_string().contains("Read-only file system"),
            "{error}"
        );
    }
    files
        .create(granted.join(".git"))
        .await
        .expect_err("it is protected");
    assert!(!granted.join(".git").exists(), "nothing is left of it");
    assert_eq!(fs::read(folder.join("outside")).expect("a file"), b"old");
    fs::remove_dir_all(&granted).expect("it is there");
}
