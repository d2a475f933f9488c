//! Tests failures of `outpost cp`: unreachable servers and invalid paths.

use std::fs;
use std::path::Path;

use outpost_testkit::TestTag;
use tokio::io::AsyncWriteExt as _;

use super::{
    Launched, OpenWatch, command,
    cp::{cp, path_text},
    finish, outcome, text,
};

#[tokio::test]
async fn unreachable_server_exits_with_255() {
    let gone = outcome(&["cp", "/dev/null", "ws://127.0.0.1:1:/x"], b"").await;
    assert_eq!(gone.status.code(), Some(255));
    let printed = text(&gone.stderr);
    assert!(
        printed.starts_with("outpost: cannot connect to ws://127.0.0.1:1: "),
        "{printed}"
    );
}

#[tokio::test]
async fn lost_server_exits_with_255() {
    let dir = tempfile::tempdir().unwrap();
    let launched = Launched::new(dir.path());
    fs::create_dir(dir.path().join("up")).unwrap();
    let to = format!("{}:{}", launched.on, path_text(&dir.path().join("up/f")));
    let tag = TestTag::new();
    let watch = OpenWatch::new(&dir.path().join("up"));
    let mut child = command(&["cp", "-", &to], &tag).spawn().unwrap();
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(&vec![b'n'; 600_000]).await.unwrap();
    watch.opened().await;
    launched.kill().await;
    drop(stdin);
    let output = finish(child).await;
    assert_eq!(output.status.code(), Some(255), "{}", text(&output.stderr));
    tag.gone().await;
}

#[tokio::test]
async fn server_lost_while_reading_exits_with_255() {
    let dir = tempfile::tempdir().unwrap();
    let launched = Launched::new(dir.path());
    fs::create_dir(dir.path().join("there")).unwrap();
    let large = dir.path().join("there/large");
    // Too large to be read before the server is killed.
    fs::File::create(&large).unwrap().set_len(1 << 36).unwrap();
    let from = format!("{}:{}", launched.on, path_text(&large));
    let to = dir.path().join("copy");
    let tag = TestTag::new();
    let watch = OpenWatch::new(&large);
    let child = command(&["cp", &from, &path_text(&to)], &tag)
        .spawn()
        .unwrap();
    watch.opened().await;
    launched.kill().await;
    let output = finish(child).await;
    assert_eq!(output.status.code(), Some(255), "{}", text(&output.stderr));
    assert!(!to.exists());
    tag.gone().await;
}

#[tokio::test]
async fn on_without_a_remote_path_is_a_usage_error() {
    let dir = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| path_text(&dir.path().join(name)));
    fs::write(&from, "x").unwrap();
    let on = ["--on", "ws://127.0.0.1:1"].map(str::to_owned);
    let copied = cp(&[&on[..], &[from, to.clone()]].concat()).await;
    assert_eq!(copied.status.code(), Some(2));
    assert_eq!(
        text(&copied.stderr),
        "outpost: --on is given, but no path uses it; write a path on that server as :PATH\n"
    );
    assert!(!Path::new(&to).exists());
}

#[tokio::test]
async fn missing_path_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let local_path = path_text(dir.path());
    for args in [
        &["cp", ":/x", &local_path][..],
        &["cp", &local_path, ":/x"],
        &["ls", "/", ":/x"],
        &["cat", ":/x"],
        &["cat", "-"],
        &["ls", "-"],
    ] {
        let rejected = outcome(args, b"").await;
        assert_eq!(rejected.status.code(), Some(2), "{args:?}: {rejected:?}");
        assert_eq!(text(&rejected.stdout), "", "{args:?}");
    }
}

#[tokio::test]
async fn token_and_certificates_need_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let token = crate::auth::secret_file(dir.path(), "token", "s3cret");
    let (token, path) = (path_text(&token), path_text(dir.path()));
    let fingerprint = format!("sha256:{}", "00".repeat(32));
    for command in [
        &["run", "--", "true"][..],
        &["run", "--detach", "--", "true"],
        &["run", "--on", "local", "--", "true"],
        &["ps"],
        &["ls", &path],
        &["cat", &token],
        &["cp", &token, "/dev/null"],
        &["watch", &path],
        &["mcp", "list"],
        &["mcp", "proxy", "--", "true"],
    ] {
        for flag in [
            ["--token-file", &token],
            ["--ca", &token],
            ["--fingerprint", &fingerprint],
        ] {
            let verbs = 1 + usize::from(command[0] == "mcp");
            let args = [&command[..verbs], &flag, &command[verbs..]].concat();
            let refused = outcome(&args, b"").await;
            assert_eq!(refused.status.code(), Some(2), "{args:?}: {refused:?}");
            let printed = text(&refused.stderr);
            assert!(printed.contains("none is named"), "{args:?}: {printed}");
            assert_eq!(text(&refused.stdout), "", "{args:?}");
        }
    }
    // A server in a path is enough.
    let args = ["ls", "--token-file", &token, "ws://127.0.0.1:1:/"];
    let named = outcome(&args, b"").await;
    let printed = text(&named.stderr);
    assert!(printed.contains("cannot connect"), "{printed}");
}

/// They would be sent to both.
#[tokio::test]
async fn token_and_certificates_are_for_one_server() {
    let dir = tempfile::tempdir().unwrap();
    let token = crate::auth::secret_file(dir.path(), "token", "s3cret");
    let fingerprint = format!("sha256:{}", "00".repeat(32));
    let paths = ["wss://127.0.0.1:1:/a", "wss://127.0.0.1:2:/b"];
    for (flag, value) in [
        ("--token-file", path_text(&token)),
        ("--fingerprint", fingerprint),
    ] {
        let refused = outcome(&["cp", flag, &value, paths[0], paths[1]], b"").await;
        let printed = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{printed}");
        assert!(printed.contains("are for one server"), "{printed}");
        let one = outcome(&["cp", flag, &value, paths[0], "/dev/null"], b"").await;
        let printed = text(&one.stderr);
        assert!(printed.contains("cannot connect"), "{printed}");
    }
}
