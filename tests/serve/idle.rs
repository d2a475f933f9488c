//! Tests `--exit-when-idle`.

use std::time::{Duration, Instant};

use outpost_testkit::{deadline, sh};

use crate::outpost;

#[tokio::test]
async fn idle_server_exits() {
    let mut server = outpost().args(&["--exit-when-idle", "50ms"]).start().await;
    let output = server.wait().await;
    assert_eq!(output.code, Some(0));
    assert!(
        output.stderr.contains("idle timeout; shutting down"),
        "{output:?}"
    );
}

#[tokio::test]
async fn running_or_readable_process_keeps_it_alive() {
    let args = [
        "--exit-when-idle",
        "2s",
        "--closed-retention",
        "500ms",
        "--max-session-ttl",
        "unlimited",
    ];
    let mut server = outpost().args(&args).start().await;
    let client = server.connect().await;
    let params = serde_json::json!({"clientName": "t", "detachedTtlMs": null});
    client.call("initialize", params).await;
    client.notify("initialized", serde_json::json!({})).await;
    let done = server.dir().join("done");
    client
        .start(sh("p", &format!("sleep 0.5; echo > {}", done.display())))
        .await;
    let since = Instant::now();
    client.cut().await;
    let output = deadline::expect_soon("the end of the server", server.wait()).await;
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(done.exists(), "it was ended early");
    assert!(
        since.elapsed() >= Duration::from_secs(3),
        "{:?}",
        since.elapsed()
    );
}
