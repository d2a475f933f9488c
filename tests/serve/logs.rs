//! Tests `--log-level` and `--log-format`, and logs that are not read.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use outpost_testkit::{CommandOutput, ServerCommand, Transport, deadline, sh};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::Signal;
use serde_json::Value;

use crate::outpost;

/// Exercises a server and returns its output and its session's id.
async fn run_and_collect_log(launch: ServerCommand) -> (CommandOutput, String) {
    let mut server = launch.start().await;
    let client = server.connect().await;
    let response = client.handshake().await;
    let session = response["sessionId"].as_str().expect("an id").to_owned();
    client.run(sh("p", "echo hello")).await;
    client.send_text("garbage").await;
    client.error_without_id(0).await;
    client.cut().await;
    server.signal(Signal::TERM);
    (server.wait().await, session)
}

#[tokio::test]
async fn json_is_one_object_per_line() {
    let (output, _) =
        run_and_collect_log(outpost().args(&["--log-format", "json", "--log-level", "debug"]))
            .await;
    assert!(output.stderr.lines().count() >= 2, "{}", output.stderr);
    for line in output.stderr.lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert!(value.is_object(), "{line}");
    }
}

#[tokio::test]
async fn level_off_is_silent() {
    let (output, _) = run_and_collect_log(outpost().args(&["--log-level", "off"])).await;
    assert_eq!(output.stderr, "");
    let (output, _) = run_and_collect_log(outpost().args(&["--log-level", "error"])).await;
    assert_eq!(output.stderr, "");
}

#[tokio::test]
async fn piped_text_has_no_colours() {
    let (output, _) = run_and_collect_log(outpost()).await;
    assert!(output.stderr.lines().count() >= 1);
    assert!(!output.stderr.contains('\u{1b}'), "{}", output.stderr);
}

#[tokio::test]
async fn session_ids_are_truncated() {
    for format in ["text", "json"] {
        let args = ["--log-level", "trace", "--log-format", format];
        let (output, session) = run_and_collect_log(outpost().args(&args)).await;
        assert!(!output.stderr.contains(&session), "{}", output.stderr);
    }
}

#[tokio::test]
async fn full_background_log_is_rotated() {
    const MAX_LOG_BYTES: usize = 8 * 1024 * 1024;
    let dir = tempfile::tempdir().expect("a directory");
    let (log, old) = (dir.path().join("log"), dir.path().join("log.old"));
    std::fs::write(&log, vec![b'x'; MAX_LOG_BYTES - 10]).expect("a log that is nearly full");
    std::fs::write(&old, "from before").expect("an old one");
    let server = crate::outpost()
        .args(&["--background", "--log-level", "debug"])
        .after_shell(&format!("exec 2>>{}", log.display()))
        .start()
        .await;
    let client = server.client().await;
    assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
    let now = deadline::poll_until("the new log", || {
        let now = std::fs::read_to_string(&log).ok()?;
        now.contains("session attached").then_some(now)
    })
    .await;
    let rotated = std::fs::read_to_string(&old).expect("the old one");
    assert!(rotated.len() >= MAX_LOG_BYTES && rotated.len() < MAX_LOG_BYTES + 10_000);
    assert!(rotated.ends_with('\n'), "no line is cut");
    let last = rotated.trim_start_matches('x');
    assert!(
        !last.trim().is_empty(),
        "the last line is in the rotated file"
    );
    assert!(last.contains("serving") || now.contains("serving"), "{now}");
    assert!(now.len() < 100_000);
}

/// A pipe that is full, and that is read only by the test. Its other end is `path`.
fn full_pipe(path: &Path) -> File {
    let mode = Mode::from_raw_mode(0o600);
    mknodat(CWD, path, FileType::Fifo, mode, 0).expect("a pipe");
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let mut open = File::options();
    // Open for both, so that neither the server's open nor its writes fail.
    let open = open.read(true).write(true).custom_flags(nonblocking);
    let mut pipe = open.open(path).expect("an open pipe");
    while pipe.write(&[b'x'; 4096]).is_ok() {}
    pipe
}

#[tokio::test]
async fn unread_stderr_does_not_block_the_server() {
    for transport in Transport::ALL {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("stderr");
        let pipe = full_pipe(&path);
        let launch = outpost()
            .on(transport)
            .args(&["--log-level", "trace"])
            .after_shell(&format!("exec 2>{}", path.display()));
        let mut server = launch.start().await;
        let client = server.client().await;
        for process in 0..20 {
            let id = format!("p{process}");
            assert_eq!(client.run(sh(&id, "echo hi")).await.text(), "hi\n");
        }
        client.cut().await;
        server.signal(Signal::TERM);
        let output = server.wait().await;
        assert!(matches!(output.code, Some(0 | 1)), "{:?}", output.code);
        let only_url = transport == Transport::Stdio || output.stdout.lines().count() == 1;
        assert!(only_url, "{}", output.stdout);
        drop(pipe);
    }
}

#[tokio::test]
async fn late_reader_of_stderr_gets_the_log() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("stderr");
    let mut pipe = full_pipe(&path);
    let launch = outpost().after_shell(&format!("exec 2>{}", path.display()));
    let mut server = launch.start().await;
    drop(server.client().await);
    let mut log = Vec::new();
    deadline::poll_until("the log", || {
        let _ = pipe.read_to_end(&mut log);
        String::from_utf8_lossy(&log)
            .contains("session attached")
            .then_some(())
    })
    .await;
    // The last lines of the shutdown fit into the pipe.
    server.signal(Signal::TERM);
    assert_eq!(server.wait().await.code, Some(0));
    let _ = pipe.read_to_end(&mut log);
    let log = String::from_utf8_lossy(&log);
    assert!(log.contains("serving"), "{log}");
    assert!(log.contains("shutting down"), "{log}");
}
