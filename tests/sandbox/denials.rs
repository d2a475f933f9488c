//! `sandboxDenied`.

use outpost_testkit::sh;
use serde_json::json;

use super::Site;
use crate::ready;

#[tokio::test]
async fn a_failure_that_shows_the_sandboxs_hand_is_a_denial() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let outside = site.outside("file");
    let script = format!("touch {}", outside.display());
    let story = client.run(site.script("p", &script)).await;
    assert_eq!(story.code(), 1);
    assert!(story.denied(), "{}", story.stderr());
    assert!(!outside.exists());
    assert_eq!(client.read("p", json!({})).await["sandboxDenied"], true);
    // The same without it.
    let story = client.run(sh("q", &script)).await;
    assert_eq!((story.code(), story.denied()), (0, false));
}

#[tokio::test]
async fn other_failures_and_successes_are_none() {
    let (_server, client) = ready().await;
    let site = Site::new();
    for (id, script) in [
        ("fails", "echo no such file; exit 1"),
        ("succeeds", "echo permission denied"),
        ("killed", "kill -TERM $$"),
    ] {
        let story = client.run(site.script(id, script)).await;
        assert!(!story.denied(), "{id}");
        assert_eq!(client.read(id, json!({})).await["sandboxDenied"], false);
    }
    // Nor is what somebody says who isn't confined.
    let story = client
        .run(sh("free", "echo permission denied; exit 1"))
        .await;
    assert!(!story.denied());
}

#[tokio::test]
async fn on_a_terminal_too() {
    let (_server, client) = ready().await;
    let site = Site::new();
    let start = site.script("p", "echo 'Operation not permitted'; exit 3");
    let story = client.run(start.tty()).await;
    assert_eq!(story.code(), 3);
    assert!(story.denied());
}
