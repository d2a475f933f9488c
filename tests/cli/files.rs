//! Tests `outpost ls` and `outpost cat`.

use std::fs;

use outpost_testkit::{TestTag, Transport};
use serde_json::Value;

use super::{Launched, OpenWatch, command, finish, outcome, text};
use crate::outpost;

#[tokio::test]
async fn directory_is_listed_locally_and_remotely() {
    let server = outpost().on(Transport::Unix).start().await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    fs::create_dir(dir.path().join("d")).unwrap();
    fs::write(dir.path().join("file"), "12345").unwrap();
    std::os::unix::fs::symlink("d", dir.path().join("link")).unwrap();
    let url = &server.urls()[0];
    let remote_path = format!("{url}:{path}");
    for args in [
        vec!["ls", path],
        vec!["ls", &remote_path],
        vec!["ls", "--on", url, path],
    ] {
        let listed = outcome(&args, b"").await;
        assert_eq!(text(&listed.stdout), "d/\nfile\nlink/\n", "{args:?}");
        assert_eq!(listed.status.code(), Some(0));
    }
    let long = outcome(&["ls", "-l", &remote_path], b"").await;
    let lines: Vec<_> = text(&long.stdout).lines().collect();
    assert!(lines[0].starts_with("KIND"), "{lines:?}");
    assert!(
        lines[2].starts_with("file  ") && lines[2].ends_with("Z  file"),
        "{lines:?}"
    );
    assert!(lines[3].starts_with("link to directory  "), "{lines:?}");
    let json = outcome(&["ls", "--json", &remote_path], b"").await;
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json[1]["fileName"], "file");
    assert_eq!(json[1]["size"], 5);
    assert_eq!(json[1]["path"], format!("{path}/file"));
    assert_eq!(json[2]["isSymlink"], true);
    let one = outcome(&["ls", &format!("{remote_path}/file")], b"").await;
    assert_eq!(text(&one.stdout), format!("{path}/file\n"));
}

#[tokio::test]
async fn missing_file_is_reported_and_the_rest_is_shown() {
    let server = outpost().start().await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    fs::write(dir.path().join("a"), "one\n").unwrap();
    fs::write(dir.path().join("b"), "two\n").unwrap();
    let url = &server.urls()[0];
    let [a, no, b] = ["a", "no", "b"].map(|name| format!("{path}/{name}"));
    let shown = outcome(&["cat", "--on", url, &a, &no, &b], b"").await;
    assert_eq!(text(&shown.stdout), "one\ntwo\n");
    assert_eq!(shown.status.code(), Some(1));
    assert_eq!(
        text(&shown.stderr),
        format!("outpost: cannot read {no:?}: No such file or directory (os error 2)\n")
    );
    let listed = outcome(&["ls", "--on", url, &no, path], b"").await;
    assert_eq!(text(&listed.stdout), format!("{path}:\na\nb\n"));
    assert_eq!(listed.status.code(), Some(1));
}

#[tokio::test]
async fn broken_pipe_is_not_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large");
    fs::write(&path, vec![b'x'; 10_000_000]).unwrap();
    let binary = outpost();
    let script = format!(
        "{{ '{}' cat '{}'; echo $? >&2; }} | head -c 10",
        binary.binary().display(),
        path.display()
    );
    let output = outcome(&["run", "--", "bash", "-c", &script], b"").await;
    assert_eq!(text(&output.stdout), "xxxxxxxxxx");
    assert_eq!(text(&output.stderr), "0\n");
}

#[tokio::test]
async fn unreachable_server_exits_with_255() {
    for verb in ["cat", "ls"] {
        let gone = outcome(&[verb, "ws://127.0.0.1:1/?token=secret:/x"], b"").await;
        assert_eq!(gone.status.code(), Some(255), "{verb}");
        let printed = text(&gone.stderr);
        let message = "outpost: cannot connect to ws://127.0.0.1:1/: ";
        assert!(printed.starts_with(message), "{printed}");
        assert_eq!(printed.lines().count(), 1, "{printed}");
    }
    let dir = tempfile::tempdir().unwrap();
    let launched = Launched::new(dir.path());
    let large = dir.path().join("large");
    // Larger than all buffers between the file and a reader that has stopped.
    fs::write(&large, vec![b'x'; 20_000_000]).unwrap();
    let tag = TestTag::new();
    let args = ["cat", "--on", &launched.on, large.to_str().unwrap()];
    let watch = OpenWatch::new(&large);
    let child = command(&args, &tag).spawn().expect("spawn");
    watch.opened().await;
    launched.kill().await;
    let output = finish(child).await;
    assert_eq!(output.status.code(), Some(255), "{}", text(&output.stderr));
    tag.gone().await;
}

#[tokio::test]
async fn server_without_a_path_is_a_usage_error() {
    for args in [
        ["ls", "ws://127.0.0.1:1"],
        ["cat", "unix:///run/x"],
        ["ls", "unix:a:/b"],
    ] {
        let output = outcome(&args, b"").await;
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
    let output = outcome(&["cat", ":/x"], b"").await;
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--on"));
}
