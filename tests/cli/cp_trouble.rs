//! `outpost cp` where nothing can be copied: a server is out of reach, or a path means nothing.

use std::fs;
use std::path::Path;

use outpost_testkit::Mark;
use tokio::io::AsyncWriteExt as _;

use super::{
    Launched, command,
    cp::{cp, word},
    ended, has_open, outcome, text,
};

#[tokio::test]
async fn a_server_out_of_reach_has_a_code_of_its_own() {
    let gone = outcome(&["cp", "/dev/null", "ws://127.0.0.1:1:/x"], b"").await;
    assert_eq!(gone.status.code(), Some(255));
    let said = text(&gone.stderr);
    assert!(
        said.starts_with("outpost: cannot connect to ws://127.0.0.1:1: "),
        "{said}"
    );
}

#[tokio::test]
async fn so_has_one_that_is_lost_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let launched = Launched::new(folder.path());
    fs::create_dir(folder.path().join("up")).unwrap();
    let to = format!("{}:{}", launched.on, word(&folder.path().join("up/f")));
    let mark = Mark::new();
    let mut child = command(&["cp", "-", &to], &mark).spawn().unwrap();
    let mut stdin = child.stdin.take().expect("it was asked for");
    stdin.write_all(&vec![b'n'; 600_000]).await.unwrap();
    let pid = launched.pid().await;
    has_open(pid, &folder.path().join("up")).await;
    launched.kill().await;
    drop(stdin);
    let output = ended(child).await;
    assert_eq!(output.status.code(), Some(255), "{}", text(&output.stderr));
    mark.gone().await;
}

#[tokio::test]
async fn so_has_one_that_is_lost_while_its_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let launched = Launched::new(folder.path());
    fs::create_dir(folder.path().join("there")).unwrap();
    let large = folder.path().join("there/large");
    // Longer than anybody could read it in the time until the server is gone.
    fs::File::create(&large).unwrap().set_len(1 << 36).unwrap();
    let from = format!("{}:{}", launched.on, word(&large));
    let to = folder.path().join("copy");
    let mark = Mark::new();
    let child = command(&["cp", &from, &word(&to)], &mark).spawn().unwrap();
    let pid = launched.pid().await;
    has_open(pid, &folder.path().join("there")).await;
    launched.kill().await;
    let output = ended(child).await;
    assert_eq!(output.status.code(), Some(255), "{}", text(&output.stderr));
    assert!(!to.exists());
    mark.gone().await;
}

#[tokio::test]
async fn a_server_that_no_path_is_on_is_a_mistake() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| word(&folder.path().join(name)));
    fs::write(&from, "x").unwrap();
    let on = ["--on", "ws://127.0.0.1:1"].map(str::to_owned);
    let copied = cp(&[&on[..], &[from, to.clone()]].concat()).await;
    assert_eq!(copied.status.code(), Some(2));
    assert_eq!(
        text(&copied.stderr),
        "outpost: --on names a server that no path is on; a path there is written :PATH\n"
    );
    assert!(!Path::new(&to).exists());
}

#[tokio::test]
async fn a_path_that_is_nowhere_is_a_mistake() {
    let folder = tempfile::tempdir().unwrap();
    let here = word(folder.path());
    for args in [
        &["cp", ":/x", &here][..],
        &["cp", &here, ":/x"],
        &["ls", "/", ":/x"],
        &["cat", ":/x"],
        &["cat", "-"],
        &["ls", "-"],
    ] {
        let refused = outcome(args, b"").await;
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {refused:?}");
        assert_eq!(text(&refused.stdout), "", "{args:?}");
    }
}
