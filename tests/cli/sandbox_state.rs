//! Tests what `outpost sandbox` remembers of earlier commands.

use std::{fs, path::Path};

use outpost_testkit::TestTag;

use super::{command, finish, sandbox::script, text};

/// Runs a sandboxed script, which may write its directory only, with a state directory.
async fn with_state(state: &Path, dir: &Path, line: &str) -> std::process::Output {
    let tag = TestTag::new();
    let flags = ["--profile", ":read-only", "--write", "."];
    let child = command(&script(dir.to_str().expect("text"), &flags, line), &tag)
        .env("XDG_STATE_HOME", state)
        .spawn();
    let output = finish(child.expect("spawn")).await;
    tag.gone().await;
    output
}

#[tokio::test]
async fn link_planted_by_an_earlier_command_grants_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    for name in ["ws/app", "home", "state"] {
        fs::create_dir_all(at(name)).expect("directories");
    }
    let run = async |name: &str, line: &str| with_state(&at("state"), &at(name), line).await;
    let planted = run("ws", "rmdir app && ln -s ../home app").await;
    assert_eq!(planted.status.code(), Some(0), "{planted:?}");
    let refused = run("ws/app", "echo key > key").await;
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let printed = text(&refused.stderr);
    assert!(
        printed.contains("earlier sandboxed process could write"),
        "{printed}"
    );
    assert!(!at("home/key").exists());
    // The target can be named.
    let named = run("home", "echo key > key").await;
    assert_eq!(named.status.code(), Some(0), "{named:?}");
    // A directory that can't be written is an error with a remedy.
    let tag = TestTag::new();
    let child = command(&script(at("ws").to_str().expect("text"), &[], "true"), &tag)
        .env("XDG_STATE_HOME", "/proc/nowhere")
        .spawn();
    let failed = finish(child.expect("spawn")).await;
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let printed = text(&failed.stderr);
    assert!(
        printed.contains("cannot create the record of granted directories"),
        "{printed}"
    );
    assert!(printed.contains("set XDG_STATE_HOME"), "{printed}");
}

/// The shell follows a link and tells its path in `PWD`; the system knows only the target.
#[tokio::test]
async fn link_that_the_shell_has_followed_grants_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    for name in ["ws/app", "home", "state"] {
        fs::create_dir_all(at(name)).expect("directories");
    }
    let planted = with_state(&at("state"), &at("ws"), "rmdir app && ln -s ../home app").await;
    assert_eq!(planted.status.code(), Some(0), "{planted:?}");
    let flags = ["--profile", ":read-only", "--write", "."];
    let in_directory = async |logical: &str, line: &str| {
        let tag = TestTag::new();
        let child = command(
            &[&["sandbox"], &flags[..], &["--", "/bin/sh", "-c", line]].concat(),
            &tag,
        )
        .env("XDG_STATE_HOME", at("state"))
        .env("PWD", at(logical))
        .current_dir(at("home"))
        .spawn();
        let output = finish(child.expect("spawn")).await;
        tag.gone().await;
        output
    };
    let refused = in_directory("ws/app", "echo key > key").await;
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let printed = text(&refused.stderr);
    assert!(
        printed.contains("earlier sandboxed process could write"),
        "{printed}"
    );
    assert!(!at("home/key").exists());
    // As of a program that changes its directory without a shell.
    let stale = in_directory("ws", "echo key > key").await;
    assert_eq!(stale.status.code(), Some(0), "{stale:?}");
    assert!(at("home/key").exists());
}

/// As of a service.
#[tokio::test]
async fn user_without_a_home_directory_can_use_a_sandbox() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir_all(dir.path().join("ws")).expect("directories");
    let workspace = dir.path().join("ws");
    for home in [None, Some("/nonexistent")] {
        let tag = TestTag::new();
        let mut sandboxed = command(
            &script(workspace.to_str().expect("text"), &[], "> made"),
            &tag,
        );
        sandboxed
            .env_remove("HOME")
            .env_remove("XDG_STATE_HOME")
            .env("XDG_RUNTIME_DIR", dir.path())
            .envs(home.map(|home| ("HOME", home)));
        let output = finish(sandboxed.spawn().expect("spawn")).await;
        assert_eq!(output.status.code(), Some(0), "{home:?}: {output:?}");
        assert!(dir.path().join("outpost/sandbox/granted").exists());
        tag.gone().await;
    }
}
