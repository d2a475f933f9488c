//! `outpost logs`: what a process has written.

use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::home;
use crate::outpost;

#[tokio::test]
async fn each_stream_goes_to_its_own() {
    let home = home();
    let id = home
        .detach("printf 'out\\n'; printf 'err\\n' >&2; exec sleep 1000")
        .await;
    let mut following = home.watch(&["logs", "-f", &id]);
    following.prints("out").await;
    let read = loop {
        let read = home.run(&["logs", &id[..4]]).await;
        if read.stderr.contains("err") {
            break read;
        }
    };
    assert_eq!(read.code, Some(0));
    assert_eq!(
        (read.stdout.as_str(), read.stderr.as_str()),
        ("out\n", "err\n")
    );
    home.output(&["kill", &id]).await;
    let ended = following.ended().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "err\n"));
    home.stop().await;
}

#[tokio::test]
async fn bytes_are_left_as_they_are() {
    let home = home();
    let file = home.folder().join("bytes");
    let bytes: Vec<u8> = (0..300_000_u32).map(|n| (n * 7 % 251) as u8).collect();
    std::fs::write(&file, &bytes).unwrap();
    let id = home.detach(&format!("cat {}", file.display())).await;
    let copy = home.folder().join("copy");
    home.output(&["logs", "-f", &id]).await;
    let script = format!("\"$0\" logs {id} > {}", copy.display());
    let binary = std::env::var_os("NEXTEST_BIN_EXE_outpost")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_outpost").into());
    let status = Command::new("sh")
        .args(["-c", &script])
        .arg(binary)
        .env("XDG_RUNTIME_DIR", home.folder())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(std::fs::read(&copy).unwrap(), bytes);
    home.stop().await;
}

#[tokio::test]
async fn several_follow_until_it_closes() {
    let home = home();
    let go = home.folder().join("go");
    let script = format!(
        "echo begun; while [ ! -e {} ]; do sleep 0.02; done; echo done; exit 3",
        go.display()
    );
    let id = home.detach(&script).await;
    let mut followers: Vec<_> = (0..3)
        .map(|_| home.watch(&["logs", "--follow", &id]))
        .collect();
    for follower in &followers {
        follower.prints("begun").await;
    }
    std::fs::write(&go, "").unwrap();
    for follower in &mut followers {
        let ended = follower.ended().await;
        assert_eq!(ended.stdout, "begun\ndone\n");
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    }
    home.stop().await;
}

#[tokio::test]
async fn ctrl_c_ends_the_following_and_not_the_process() {
    let home = home();
    let id = home.detach("echo begun; exec sleep 1000").await;
    let mut follower = home.watch(&["logs", "-f", &id]);
    follower.prints("begun").await;
    follower.signal(Signal::INT);
    assert_eq!(follower.ended().await.code, Some(130));
    let ps = home.output(&["ps"]).await;
    assert!(ps.contains(&format!("{id}  running")), "{ps}");
    home.stop().await;
}

#[tokio::test]
async fn what_is_no_longer_retained_is_said() {
    let home = home();
    // A terminal's worth more than the 16 MiB that are kept.
    let id = home
        .detach("head -c 20000000 /dev/zero; echo; echo end")
        .await;
    let read = loop {
        let read = home.run(&["logs", &id]).await;
        if read.stdout.ends_with("\nend\n") {
            break read;
        }
    };
    assert_eq!(read.code, Some(0));
    let kept = read.stdout.len();
    assert!((15_000_000..17_000_000).contains(&kept), "{kept}");
    let lost = (20_000_005 - kept) as f64 / f64::from(1 << 20);
    let words = format!("outpost: the first {lost:.1} MiB are no longer retained\n");
    assert_eq!(read.stderr, words);
    home.stop().await;
}

#[tokio::test]
async fn a_reader_that_has_seen_enough_is_no_failure() {
    let home = home();
    let id = home.detach("seq 100000; echo done").await;
    let ended = home.run(&["logs", "-f", &id]).await;
    assert!(ended.stdout.ends_with("done\n"));
    let binary = std::env::var_os("NEXTEST_BIN_EXE_outpost")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_outpost").into());
    let script = format!("{{ \"$0\" logs {id}; echo code $? >&2; }} | head -n 1");
    let said = Command::new("sh")
        .args(["-c", &script])
        .arg(binary)
        .env("XDG_RUNTIME_DIR", home.folder())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(said.stdout, b"1\n");
    assert_eq!(String::from_utf8_lossy(&said.stderr), "code 0\n");
    home.stop().await;
}

#[tokio::test]
async fn a_follower_ends_with_the_server() {
    let home = home();
    let id = home.detach("echo begun; exec sleep 1000").await;
    let mut follower = home.watch(&["logs", "-f", &id]);
    follower.prints("begun").await;
    home.stop().await;
    let ended = follower.ended().await;
    assert_eq!(ended.stdout, "begun\n");
    // It may hear that the server has ended the process before it hears that the server is gone.
    match ended.code {
        Some(0) => assert_eq!(ended.stderr, ""),
        Some(1) => assert!(
            ended.stderr.starts_with("outpost: cannot read"),
            "{ended:?}"
        ),
        _ => panic!("{ended:?}"),
    }
}

#[tokio::test]
async fn what_is_unknown_is_an_error_and_a_missing_id_a_misuse() {
    let home = home();
    let none = home.run(&["logs", "nope"]).await;
    assert_eq!(none.code, Some(1));
    assert!(
        none.stderr.contains("no process nope: no server"),
        "{none:?}"
    );
    home.detach("true").await;
    let unknown = home.run(&["logs", "nope"]).await;
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(1), ""));
    let words = "outpost: no process nope; `outpost ps` shows what there is\n";
    assert_eq!(unknown.stderr, words);
    assert_eq!(outpost().run(&["logs"]).await.code, Some(2));
    home.stop().await;
}
