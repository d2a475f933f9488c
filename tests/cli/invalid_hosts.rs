//! Tests names and URLs that `outpost hosts add` refuses.

use std::fs;

use crate::outpost;

#[tokio::test]
async fn names_that_are_no_hosts_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["local", "ssh", "ws://h", "a/b", "-x"] {
        let command = outpost()
            .env("OUTPOST_CONFIG", "")
            .env("XDG_CONFIG_HOME", &dir.path().display().to_string());
        let output = command
            .run(&["hosts", "add", "--", name, "ws://127.0.0.1:1"])
            .await;
        assert_eq!(output.code, Some(2), "{name}: {output:?}");
        assert!(output.stderr.contains("expected a"), "{output:?}");
    }
}

#[tokio::test]
async fn impossible_urls_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (url, reason) in [
        ("http://h", "begins with ws://"),
        ("build", "begins with ws://"),
        ("ws://", "the host is missing"),
        ("wss://:7443", "the host is missing"),
        ("ws://h:0", "not a number from 1 to 65535"),
        ("wss://h:65536", "not a number from 1 to 65535"),
        ("unix:run", "expected unix:///PATH"),
        ("ssh://", "expected ssh://[USER@]HOST[:PORT]"),
        ("ssh://h:0", "expected ssh://[USER@]HOST[:PORT]"),
    ] {
        let command = outpost()
            .env("OUTPOST_CONFIG", "")
            .env("XDG_CONFIG_HOME", &dir.path().display().to_string());
        let output = command.run(&["hosts", "add", "h", url]).await;
        assert_eq!(output.code, Some(2), "{url}: {output:?}");
        assert!(output.stderr.contains(reason), "{url}: {output:?}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
