//! `outpost ls` and `outpost cat`.

use std::fs;

use outpost_testkit::{Mark, Transport};
use serde_json::Value;

use super::{Launched, command, ended, has_open, outcome, text};
use crate::outpost;

#[tokio::test]
async fn a_directory_is_listed_wherever_it_is() {
    let server = outpost().on(Transport::Unix).start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    fs::create_dir(folder.path().join("d")).unwrap();
    fs::write(folder.path().join("file"), "12345").unwrap();
    std::os::unix::fs::symlink("d", folder.path().join("link")).unwrap();
    let url = &server.urls()[0];
    let there = format!("{url}:{path}");
    for args in [
        vec!["ls", path],
        vec!["ls", &there],
        vec!["ls", "--on", url, path],
    ] {
        let listed = outcome(&args, b"").await;
        assert_eq!(text(&listed.stdout), "d/\nfile\nlink/\n", "{args:?}");
        assert_eq!(listed.status.code(), Some(0));
    }
    let long = outcome(&["ls", "-l", &there], b"").await;
    let lines: Vec<_> = text(&long.stdout).lines().collect();
    assert!(lines[0].starts_with("KIND"), "{lines:?}");
    assert!(
        lines[2].starts_with("file  ") && lines[2].ends_with("Z  file"),
        "{lines:?}"
    );
    assert!(lines[3].starts_with("link to directory  "), "{lines:?}");
    let json = outcome(&["ls", "--json", &there], b"").await;
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json[1]["fileName"], "file");
    assert_eq!(json[1]["size"], 5);
    assert_eq!(json[1]["path"], format!("{path}/file"));
    assert_eq!(json[2]["isSymlink"], true);
    let one = outcome(&["ls", &format!("{there}/file")], b"").await;
    assert_eq!(text(&one.stdout), format!("{path}/file\n"));
}

#[tokio::test]
async fn what_is_not_there_is_said_and_the_rest_is_shown() {
    let server = outpost().start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    fs::write(folder.path().join("a"), "one\n").unwrap();
    fs::write(folder.path().join("b"), "two\n").unwrap();
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
async fn a_reader_that_has_seen_enough_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large");
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
async fn a_server_out_of_reach_has_a_code_of_its_own() {
    for verb in ["cat", "ls"] {
        let gone = outcome(&[verb, "ws://127.0.0.1:1/?token=secret:/x"], b"").await;
        assert_eq!(gone.status.code(), Some(255), "{verb}");
        let said = text(&gone.stderr);
        let words = "outpost: cannot connect to ws://127.0.0.1:1/: ";
        assert!(said.starts_with(words), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let folder = tempfile::tempdir().unwrap();
    let launched = Launched::new(folder.path());
    let large = folder.path().join("large");
    // More than is read while nobody takes it.
    fs::write(&large, vec![b'x'; 20_000_000]).unwrap();
    let mark = Mark::new();
    let args = ["cat", "--on", &launched.on, large.to_str().unwrap()];
    let child = command(&args, &mark).spawn().expect("it starts");
    has_open(launched.pid().await, &large).await;
    launched.kill().await;
    let output = ended(child).await;
    assert_eq!(output.status.code(), Some(255), "{}", text(&output.stderr));
    mark.gone().await;
}

#[tokio::test]
async fn a_server_without_a_path_is_a_mistake() {
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
