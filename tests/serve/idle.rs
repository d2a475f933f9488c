//! `--exit-when-idle`: a server that nobody needs leaves.

use std::time::{Duration, Instant};

use outpost_testkit::{patience, sh};

use crate::outpost;

#[tokio::test]
async fn with_nothing_to_do_it_ends_by_itself() {
    let mut server = outpost().args(&["--exit-when-idle", "50ms"]).start().await;
    let ended = server.ended().await;
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.stderr.contains("ending: there was nothing to do"),
        "{ended:?}"
    );
}

#[tokio::test]
async fn it_stays_as_long_as_something_runs_or_can_be_read() {
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
    let done = server.folder().join("done");
    client
        .start(sh("p", &format!("sleep 0.5; echo > {}", done.display())))
        .await;
    let since = Instant::now();
    client.cut().await;
    let ended = patience::soon("the end of the server", server.ended()).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(done.exists(), "it was left to finish");
    assert!(
        since.elapsed() >= Duration::from_secs(3),
        "{:?}",
        since.elapsed()
    );
}
