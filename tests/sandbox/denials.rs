//! Tests `sandboxDenied`.

use outpost_testkit::sh;
use serde_json::json;

use super::SandboxDirs;
use crate::ready;

#[tokio::test]
async fn likely_denial_is_reported() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let outside = dirs.outside("file");
    let script = format!("touch {}", outside.display());
    let log = client.run(dirs.script("p", &script)).await;
    assert_eq!(log.code(), 1);
    assert!(log.denied(), "{}", log.stderr());
    assert!(!outside.exists());
    assert_eq!(client.read("p", json!({})).await["sandboxDenied"], true);
    // An unsandboxed process succeeds.
    let log = client.run(sh("q", &script)).await;
    assert_eq!((log.code(), log.denied()), (0, false));
}

#[tokio::test]
async fn other_failures_and_successes_are_not_denials() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    for (id, script) in [
        ("fails", "echo no such file; exit 1"),
        ("succeeds", "echo permission denied"),
        ("killed", "kill -TERM $$"),
    ] {
        let log = client.run(dirs.script(id, script)).await;
        assert!(!log.denied(), "{id}");
        assert_eq!(client.read(id, json!({})).await["sandboxDenied"], false);
    }
    // The output of an unsandboxed process doesn't count.
    let log = client
        .run(sh("free", "echo permission denied; exit 1"))
        .await;
    assert!(!log.denied());
}

#[tokio::test]
async fn denial_on_a_terminal_is_reported() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let start = dirs.script("p", "echo 'Operation not permitted'; exit 3");
    let log = client.run(start.tty()).await;
    assert_eq!(log.code(), 3);
    assert!(log.denied());
}
