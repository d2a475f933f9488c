//! Program lookup.

use std::fs;

use outpost_process::{Command, Exit, SpawnError, SpawnErrorKind};
use tempfile::TempDir;

use crate::support::*;

/// Creates `first/tool`, which cannot be executed, `second/tool`, which can, and the directory
/// `third/tool`.
fn directories() -> TempDir {
    let root = tempfile::tempdir().expect("a directory");
    for name in ["first", "second", "third/tool"] {
        fs::create_dir_all(root.path().join(name)).expect("a directory");
    }
    script(
        &root.path().join("first/tool"),
        "#!/bin/sh\necho first\n",
        0o644,
    );
    script(
        &root.path().join("second/tool"),
        "#!/bin/sh\necho second\n",
        0o755,
    );
    root
}

fn tool(root: &TempDir, path: Option<&str>) -> Command {
    let mut command = command(&["tool"], PIPES);
    command.cwd = root.path().to_owned();
    command.env = path
        .map(|path| ("PATH".into(), path.into()))
        .into_iter()
        .collect();
    command
}

async fn refused(command: Command) -> SpawnError {
    let spawned = within("the refusal", spawner().spawn(command)).await;
    spawned.expect_err("there is nothing to execute")
}

#[tokio::test]
async fn default_path_is_used_without_path() {
    let mut command = command(&["true"], PIPES);
    command.env = Vec::new();
    assert_eq!(run(&spawner(), command).await.exit, Exit::Code(0));
}

#[tokio::test]
async fn child_path_is_searched_not_the_servers() {
    let mut command = command(&["true"], PIPES);
    command.env = vec![("PATH".into(), "/nowhere".into())];
    let error = refused(command).await;
    assert_eq!(error.kind(), SpawnErrorKind::NotFound);
    assert_eq!(
        error.to_string(),
        r#"cannot execute "true": No such file or directory (os error 2)"#
    );
}

#[tokio::test]
async fn relative_path_entries_use_child_directory() {
    let root = directories();
    let finished = run(&spawner(), tool(&root, Some("none:second"))).await;
    assert_eq!(finished.stdout, "second\n");
    let mut here = tool(&root, Some(":/bin"));
    here.cwd = root.path().join("second");
    assert_eq!(run(&spawner(), here).await.stdout, "second\n");
    let mut slash = tool(&root, None);
    slash.argv = vec!["second/tool".into()];
    assert_eq!(run(&spawner(), slash).await.stdout, "second\n");
}

#[tokio::test]
async fn unexecutable_candidate_is_skipped() {
    let root = directories();
    let finished = run(&spawner(), tool(&root, Some("first:third:second"))).await;
    assert_eq!(finished.stdout, "second\n");
}

#[tokio::test]
async fn unexecutable_candidate_is_reported_if_it_is_the_only_one() {
    let root = directories();
    for path in ["first", "first:none", "third", "none:third:first/tool"] {
        let error = refused(tool(&root, Some(path))).await;
        assert_eq!(error.kind(), SpawnErrorKind::NotExecutable, "{path}");
        assert_eq!(error.raw_os_error(), Some(13), "{path}: {error}");
    }
}

#[tokio::test]
async fn file_without_format_is_not_run_by_a_shell() {
    let root = directories();
    script(&root.path().join("plain"), "echo no\n", 0o755);
    let mut command = tool(&root, None);
    command.argv = vec!["./plain".into()];
    let error = refused(command).await;
    assert_eq!(error.kind(), SpawnErrorKind::NotExecutable);
    assert_eq!(error.raw_os_error(), Some(8), "{error}");
}

#[tokio::test]
async fn empty_name_is_not_found() {
    let error = refused(command(&[""], PIPES)).await;
    assert_eq!(error.kind(), SpawnErrorKind::NotFound);
}
