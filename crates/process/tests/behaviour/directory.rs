//! Working directory.

use outpost_process::{SpawnErrorKind, Stdio};

use crate::support::*;

#[tokio::test]
async fn working_directory_is_as_given() {
    let root = tempfile::tempdir().expect("a directory");
    let real = root.path().canonicalize().expect("it exists");
    let mut command = command(&["pwd", "-P"], PIPES);
    command.cwd = real.clone();
    let finished = run(&spawner(), command).await;
    assert_eq!(finished.stdout.trim_end(), real.to_str().expect("plain"));
}

async fn refused(cwd: &str, stdio: Stdio) -> (SpawnErrorKind, Option<i32>, String) {
    let mut command = command(&["true"], stdio);
    command.cwd = cwd.into();
    let error = within("the refusal", spawner().spawn(command)).await;
    let error = error.expect_err("the directory can't be entered");
    (error.kind(), error.raw_os_error(), error.to_string())
}

#[tokio::test]
async fn missing_directory_is_named_in_error() {
    let message = r#"cannot enter directory "/no/such": No such file or directory (os error 2)"#;
    for stdio in [PIPES, PIPES_AND_STDIN, PTY] {
        let expected = (SpawnErrorKind::Directory, Some(2), message.to_owned());
        assert_eq!(refused("/no/such", stdio).await, expected);
    }
}

#[tokio::test]
async fn file_is_not_a_directory() {
    let (kind, errno, _) = refused("/dev/null", PIPES).await;
    assert_eq!((kind, errno), (SpawnErrorKind::Directory, Some(20)));
}
