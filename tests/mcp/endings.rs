//! How the proxy ends what it has started, and what doesn't hold it up.

use outpost_testkit::patience;
use serde_json::{Value, json};

use super::{Host, text};
use crate::outpost;

fn sh(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

/// Waits until a process is gone and buried.
async fn gone(pid: &Value) {
    let path = format!("/proc/{pid}");
    let path = std::path::Path::new(&path);
    patience::seen("the end of a process", || (!path.exists()).then_some(())).await;
}

#[tokio::test]
async fn what_a_server_leaves_behind_is_ended_with_its_input() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for args in [&[][..], &on[..]] {
        // It has exited, and something that it started holds its output.
        let script = "sleep 1000 & echo \"{\\\"pid\\\":$$}\"; exit 5";
        let mut host = Host::start(args, &sh(script));
        let told = host.next().await.expect("a message");
        gone(&told["pid"]).await;
        let output = host.close().await;
        assert_eq!(output.status.code(), Some(5), "{args:?}: {output:?}");
    }
}

#[tokio::test]
async fn what_a_server_leaves_behind_in_silence_is_ended_with_it() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for args in [&[][..], &on[..]] {
        let script = "setsid sleep 1000 >/dev/null 2>&1 & echo '{}'; exit 5";
        let mut host = Host::start(args, &sh(script));
        assert_eq!(host.next().await, Some(json!({})));
        let output = host.ended().await;
        assert_eq!(output.status.code(), Some(5), "{args:?}: {output:?}");
    }
}

#[tokio::test]
async fn a_server_is_told_to_end_before_it_is_made_to() {
    let server = outpost().start().await;
    let on = ["--on", server.urls()[0].as_str()];
    for args in [&[][..], &on[..]] {
        let folder = tempfile::tempdir().expect("a folder");
        let told = folder.path().join("told");
        let script = format!(
            "trap '' HUP; trap 'echo told > {}; exit 0' TERM; echo '{{}}'; \
             while :; do sleep 0.05; done",
            told.display()
        );
        let mut host = Host::start(args, &sh(&script));
        assert_eq!(host.next().await, Some(json!({})));
        let output = host.close().await;
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        assert!(told.exists(), "{args:?}: it was killed without a word");
    }
}

#[tokio::test]
async fn who_does_not_read_what_is_said_beside_gets_the_messages() {
    let script = "head -c 8000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo '{}'; exec cat";
    let mut host = Host::start(&[], &sh(script));
    // Nobody reads stderr until the end.
    assert_eq!(host.next().await, Some(json!({})));
    host.send(&json!({"id": 1})).await;
    assert_eq!(host.next().await, Some(json!({"id": 1})));
    let output = host.close().await;
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stderr);
    let words = " bytes were left out here, as nobody read them";
    assert!(said.contains(words), "{} bytes", said.len());
}
