//! Idle detection.

use std::time::{Duration, Instant};

use outpost_engine::{Limits, Ttl};
use outpost_server::Settings;
use serde_json::json;
use tokio::time::timeout;

use crate::peer::{Peer, server, server_with};

const TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn unused_server_is_idle_after_the_timeout() {
    let since = tokio::time::Instant::now();
    server(Settings::default()).idle_for(TIMEOUT).await;
    assert_eq!(since.elapsed(), TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn open_connection_prevents_idle() {
    let server = server(Settings {
        max_session_ttl: Ttl::Unlimited,
        ..Settings::default()
    });
    let mut peer = Peer::connect(&server);
    peer.initialize(json!({"detachedTtlMs": null})).await;
    let while_connected = timeout(4 * TIMEOUT, server.idle_for(TIMEOUT)).await;
    assert!(while_connected.is_err());
    let gone = tokio::time::Instant::now();
    drop(peer);
    // The session remains, without processes.
    server.idle_for(TIMEOUT).await;
    assert!(gone.elapsed() >= TIMEOUT);
}

/// In real time, because the child runs in real time.
#[tokio::test]
async fn process_prevents_idle_until_its_retention_ends() {
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
        .expect("it becomes idle");
    let elapsed = since.elapsed();
    assert!(
        elapsed >= Duration::from_millis(500) + retention,
        "{elapsed:?}"
    );
}

#[tokio::test]
async fn failed_start_does_not_prevent_idle() {
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
