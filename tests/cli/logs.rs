//! Tests `outpost logs`.

use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::new_user;
use crate::outpost;

#[tokio::test]
async fn streams_are_kept_apart() {
    let user = new_user();
    let id = user
        .detach("printf 'out\\n'; printf 'err\\n' >&2; exec sleep 1000")
        .await;
    let mut following = user.spawn(&["logs", "-f", &id]);
    following.wait_for_stdout("out").await;
    let read = loop {
        let read = user.run(&["logs", &id[..4]]).await;
        if read.stderr.contains("err") {
            break read;
        }
    };
    assert_eq!(read.code, Some(0));
    assert_eq!(
        (read.stdout.as_str(), read.stderr.as_str()),
        ("out\n", "err\n")
    );
    user.output(&["kill", &id]).await;
    let output = following.wait().await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), "err\n"));
    user.stop().await;
}

#[tokio::test]
async fn bytes_are_unchanged() {
    let user = new_user();
    let file = user.dir().join("bytes");
    let bytes: Vec<u8> = (0..300_000_u32).map(|n| (n * 7 % 251) as u8).collect();
    std::fs::write(&file, &bytes).unwrap();
    let id = user.detach(&format!("cat {}", file.display())).await;
    let copy = user.dir().join("copy");
    user.output(&["logs", "-f", &id]).await;
    let script = format!("\"$0\" logs {id} > {}", copy.display());
    let binary = std::env::var_os("NEXTEST_BIN_EXE_outpost")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_outpost").into());
    let status = Command::new("sh")
        .args(["-c", &script])
        .arg(binary)
        .env("XDG_RUNTIME_DIR", user.dir())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(std::fs::read(&copy).unwrap(), bytes);
    user.stop().await;
}

#[tokio::test]
async fn several_followers_read_until_the_close() {
    let user = new_user();
    let go = user.dir().join("go");
    let script = format!(
        "echo begun; while [ ! -e {} ]; do sleep 0.02; done; echo done; exit 3",
        go.display()
    );
    let id = user.detach(&script).await;
    let mut followers: Vec<_> = (0..3)
        .map(|_| user.spawn(&["logs", "--follow", &id]))
        .collect();
    for follower in &followers {
        follower.wait_for_stdout("begun").await;
    }
    std::fs::write(&go, "").unwrap();
    for follower in &mut followers {
        let output = follower.wait().await;
        assert_eq!(output.stdout, "begun\ndone\n");
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    }
    user.stop().await;
}

#[tokio::test]
async fn ctrl_c_ends_logs_and_not_the_process() {
    let user = new_user();
    let id = user.detach("echo begun; exec sleep 1000").await;
    let mut follower = user.spawn(&["logs", "-f", &id]);
    follower.wait_for_stdout("begun").await;
    follower.signal(Signal::INT);
    assert_eq!(follower.wait().await.code, Some(130));
    let ps = user.output(&["ps"]).await;
    assert!(ps.contains(&format!("{id}  running")), "{ps}");
    user.stop().await;
}

#[tokio::test]
async fn evicted_output_is_reported() {
    let user = new_user();
    // More than the 16 MiB that are retained.
    let id = user
        .detach("head -c 20000000 /dev/zero; echo; echo end")
        .await;
    let read = loop {
        let read = user.run(&["logs", &id]).await;
        if read.stdout.ends_with("\nend\n") {
            break read;
        }
    };
    assert_eq!(read.code, Some(0));
    let kept = read.stdout.len();
    assert!((15_000_000..17_000_000).contains(&kept), "{kept}");
    let lost = (20_000_005 - kept) as f64 / f64::from(1 << 20);
    let message = format!("outpost: the first {lost:.1} MiB are no longer retained\n");
    assert_eq!(read.stderr, message);
    user.stop().await;
}

#[tokio::test]
async fn broken_pipe_is_not_a_failure() {
    let user = new_user();
    let id = user.detach("seq 100000; echo done").await;
    let output = user.run(&["logs", "-f", &id]).await;
    assert!(output.stdout.ends_with("done\n"));
    let binary = std::env::var_os("NEXTEST_BIN_EXE_outpost")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_outpost").into());
    let script = format!("{{ \"$0\" logs {id}; echo code $? >&2; }} | head -n 1");
    let output = Command::new("sh")
        .args(["-c", &script])
        .arg(binary)
        .env("XDG_RUNTIME_DIR", user.dir())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"1\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "code 0\n");
    user.stop().await;
}

#[tokio::test]
async fn follower_ends_with_the_server() {
    let user = new_user();
    let id = user.detach("echo begun; exec sleep 1000").await;
    let mut follower = user.spawn(&["logs", "-f", &id]);
    follower.wait_for_stdout("begun").await;
    user.stop().await;
    let output = follower.wait().await;
    assert_eq!(output.stdout, "begun\n");
    // The end of the process may arrive before the end of the connection.
    match output.code {
        Some(0) => assert_eq!(output.stderr, ""),
        Some(255) => assert!(
            output.stderr.starts_with("outpost: cannot read"),
            "{output:?}"
        ),
        _ => panic!("{output:?}"),
    }
}

#[tokio::test]
async fn unknown_id_is_an_error_and_missing_id_a_usage_error() {
    let user = new_user();
    let none = user.run(&["logs", "nope"]).await;
    assert_eq!(none.code, Some(1));
    assert!(
        none.stderr.contains("no process nope: your server"),
        "{none:?}"
    );
    user.detach("true").await;
    let unknown = user.run(&["logs", "nope"]).await;
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(1), ""));
    let message = "outpost: no process nope; `outpost ps` lists the processes\n";
    assert_eq!(unknown.stderr, message);
    assert_eq!(outpost().run(&["logs"]).await.code, Some(2));
    user.stop().await;
}
