//! When there is nothing to do.

use std::time::{Duration, Instant};

use outpost_engine::{Limits, Ttl};
use outpost_server::Settings;
use serde_json::json;
use tokio::time::timeout;

use crate::peer::{Peer, server, server_with};

const SPAN: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn nobody_ever_came() {
    let since = tokio::time::Instant::now();
    server(Settings::default()).idle_for(SPAN).await;
    assert_eq!(since.elapsed(), SPAN);
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_something_to_do() {
    let server = server(Settings {
        max_session_ttl: Ttl::Unlimited,
        ..Settings::default()
    });
    let mut peer = Peer::connect(&server);
    peer.initialize(json!({"detachedTtlMs": null})).await;
    let while_connected = timeout(4 * SPAN, server.idle_for(SPAN)).await;
    assert!(while_connected.is_err());
    let gone = tokio::time::Instant::now();
    drop(peer);
    // What is left is a session in which nothing runs.
    server.idle_for(SPAN).await;
    assert!(gone.elapsed() >= SPAN);
}

/// With the times of the machine: a child knows no others.
#[tokio::test]
async fn a_process_is_something_to_do_until_it_is_forgotten() {
    let retention = Duration::from_millis(300);
    let limits = Limits {
        closed_retention: retention,
        ..Limits::default()
    };
    let settings = Settings {
        max_session_ttl: Ttl::Unlimited,
        ..Settings::default()
    };
    let server = server_with(settings, limits);
    let mut peer = Peer::connect(&server);
    peer.initialize(json!({"detachedTtlMs": null})).await;
    let since = Instant::now();
    let start = json!({
        "processId": "p", "argv": ["sleep", "0.5"], "cwd": "file:///",
        "env": {"PATH": "/usr/bin:/bin"}
    });
    peer.call("process/start", start).await;
    drop(peer);
    let idle = server.idle_for(Duration::from_millis(1));
    timeout(Duration::from_secs(20), idle)
        .await
        .expect("it is idle in the end");
    let elapsed = since.elapsed();
    assert!(
        elapsed >= Duration::from_millis(500) + retention,
        "{elapsed:?}"
    );
}

#[tokio::test]
async fn a_start_that_failed_leaves_nothing_to_do() {
    let server = server(Settings {
        max_session_ttl: Ttl::Unlimited,
        ..Settings::default()
    });
    let mut peer = Peer::connect(&server);
    peer.initialize(json!({"detachedTtlMs": null})).await;
    let start = json!({"processId": "p", "argv": ["/nope"], "cwd": "file:///"});
    let failed = peer.call("process/start", start).await;
    assert_eq!(failed["error"]["code"], -32603);
    drop(peer);
    let idle = server.idle_for(Duration::from_millis(1));
    timeout(Duration::from_secs(20), idle)
        .await
        .expect("it is idle");
}
