//! Tests how the proxy ends its server, and what must not delay its exit.

use outpost_testkit::ProcStats;
use serde_json::{Value, json};

use super::{Host, text};
use crate::outpost;

fn sh(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

async fn gone(pid: &Value) {
    let pid = pid.as_i64().expect("a pid").try_into().expect("a pid");
    ProcStats::of(pid).wait_exited().await;
}

#[tokio::test]
async fn leftover_processes_end_with_the_servers_input() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for args in [&[][..], &on[..]] {
        // The server has exited, but its child holds its output open.
        let script = "sleep 1000 & echo \"{\\\"pid\\\":$$}\"; exit 5";
        let mut host = Host::start(args, &sh(script));
        let message = host.next().await.expect("a message");
        gone(&message["pid"]).await;
        let output = host.close().await;
        assert_eq!(output.status.code(), Some(5), "{args:?}: {output:?}");
    }
}

#[tokio::test]
async fn silent_leftover_processes_end_with_the_server() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for args in [&[][..], &on[..]] {
        let script = "setsid sleep 1000 >/dev/null 2>&1 & echo '{}'; exit 5";
        let mut host = Host::start(args, &sh(script));
        assert_eq!(host.next().await, Some(json!({})));
        let output = host.finish().await;
        assert_eq!(output.status.code(), Some(5), "{args:?}: {output:?}");
    }
}

#[tokio::test]
async fn server_is_terminated_before_it_is_killed() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for args in [&[][..], &on[..]] {
        let dir = tempfile::tempdir().expect("a directory");
        let terminated = dir.path().join("terminated");
        let script = format!(
            "trap '' HUP; trap 'echo terminated > {}; exit 0' TERM; echo '{{}}'; \
             while :; do sleep 0.05; done",
            terminated.display()
        );
        let mut host = Host::start(args, &sh(&script));
        assert_eq!(host.next().await, Some(json!({})));
        let output = host.close().await;
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        assert!(
            terminated.exists(),
            "{args:?}: it was killed without SIGTERM first"
        );
    }
}

#[tokio::test]
async fn unread_stderr_does_not_block_messages() {
    let script = "head -c 8000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo '{}'; exec cat";
    let mut host = Host::start(&[], &sh(script));
    // stderr isn't read until the end.
    assert_eq!(host.next().await, Some(json!({})));
    host.send(&json!({"id": 1})).await;
    assert_eq!(host.next().await, Some(json!({"id": 1})));
    let output = host.close().await;
    assert_eq!(output.status.code(), Some(0));
    let printed = text(&output.stderr);
    let message = " bytes of stderr were dropped because they were not read";
    assert!(printed.contains(message), "{} bytes", printed.len());
}

#[tokio::test]
async fn late_stderr_reader_learns_how_much_was_dropped() {
    let script = "head -c 8000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo '{}'";
    let mut host = Host::start(&[], &sh(script));
    assert_eq!(host.next().await, Some(json!({})));
    let output = host.close_unread().await;
    assert_eq!(output.status.code(), Some(0));
    let printed = text(&output.stderr);
    let dropped = |line: &str| -> Option<usize> {
        let line = line.strip_suffix(" bytes of stderr were dropped because they were not read")?;
        line.strip_prefix("outpost: ")?.parse().ok()
    };
    let dropped: usize = printed.lines().filter_map(dropped).sum();
    let kept = printed.bytes().filter(|byte| *byte == b'x').count();
    // The line end may be among what was dropped.
    assert!(
        (8_000_000..8_000_002).contains(&(kept + dropped)),
        "{kept} and {dropped}"
    );
}
