//! `--log-level` and `--log-format`.

use outpost_testkit::{Ended, Launch, sh};
use rustix::process::Signal;
use serde_json::Value;

use crate::outpost;

/// What a server logs that has done a bit of everything, and its session's id.
async fn said(launch: Launch) -> (Ended, String) {
    let mut server = launch.start().await;
    let client = server.connect().await;
    let answer = client.shake_hands().await;
    let session = answer["sessionId"].as_str().expect("an id").to_owned();
    client.run(sh("p", "echo hello")).await;
    client.send_text("garbage").await;
    client.unasked(0).await;
    client.cut().await;
    server.signal(Signal::TERM);
    (server.ended().await, session)
}

#[tokio::test]
async fn json_is_one_object_per_line() {
    let (ended, _) = said(outpost().args(&["--log-format", "json", "--log-level", "debug"])).await;
    assert!(ended.stderr.lines().count() >= 2, "{}", ended.stderr);
    for line in ended.stderr.lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert!(value.is_object(), "{line}");
    }
}

#[tokio::test]
async fn off_is_silence() {
    let (ended, _) = said(outpost().args(&["--log-level", "off"])).await;
    assert_eq!(ended.stderr, "");
    let (ended, _) = said(outpost().args(&["--log-level", "error"])).await;
    assert_eq!(ended.stderr, "");
}

#[tokio::test]
async fn text_has_no_colours_where_nobody_sees_them() {
    let (ended, _) = said(outpost()).await;
    assert!(ended.stderr.lines().count() >= 1);
    assert!(!ended.stderr.contains('\u{1b}'), "{}", ended.stderr);
}

#[tokio::test]
async fn session_ids_are_never_logged_in_full() {
    for format in ["text", "json"] {
        let args = ["--log-level", "trace", "--log-format", format];
        let (ended, session) = said(outpost().args(&args)).await;
        assert!(!ended.stderr.contains(&session), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn a_log_that_nobody_watches_is_put_aside_when_it_is_full() {
    const MOST: usize = 8 * 1024 * 1024;
    let folder = tempfile::tempdir().expect("a folder");
    let (log, old) = (folder.path().join("log"), folder.path().join("log.old"));
    std::fs::write(&log, vec![b'x'; MOST - 10]).expect("a log that is nearly full");
    std::fs::write(&old, "from before").expect("an old one");
    let server = crate::outpost()
        .args(&["--background", "--log-level", "debug"])
        .after(&format!("exec 2>>{}", log.display()))
        .start()
        .await;
    let client = server.client().await;
    assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
    let aside = std::fs::read_to_string(&old).expect("the old one");
    assert!(aside.len() >= MOST && aside.len() < MOST + 10_000);
    assert!(aside.ends_with('\n'), "no line is cut");
    let last = aside.trim_start_matches('x');
    assert!(!last.trim().is_empty(), "the line that filled it is in it");
    let now = std::fs::read_to_string(&log).expect("the new one");
    assert!(last.contains("serving") || now.contains("serving"), "{now}");
    assert!(now.contains("session attached"), "{now}");
    assert!(now.len() < 100_000);
}
