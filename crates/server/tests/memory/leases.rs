//! Leases, takeover and closing of sessions.

use std::time::Duration;

use outpost_engine::Ttl;
use outpost_rpc::Received;
use outpost_server::{Peer as PeerKind, Server, Settings};
use serde_json::{Value, json};

use crate::{
    frozen_clock::FrozenClock,
    peer::{Peer, server},
};

/// Whether a session with a process can be resumed after this time.
async fn resumable_after(detached: Duration, settings: Settings, params: Value) -> bool {
    // Real processes take real time.
    let _clock = FrozenClock::new();
    let server = server(settings);
    let mut first = Peer::connect(&server);
    let session = first.initialize(params).await;
    let sleeps = json!({"processId": "p", "argv": ["sleep", "1000"], "cwd": "file:///", "env": {}});
    let started = first.call("process/start", sleeps).await;
    assert_eq!(started["result"]["processId"], "p", "{started}");
    let resumable = resumable_by_another(detached, &server, first, &session).await;
    server.kill_all();
    resumable
}

async fn resumable_by_another(
    detached: Duration,
    server: &Server,
    first: Peer,
    session: &str,
) -> bool {
    drop(first);
    // Wait until the server has detached the session.
    let mut watcher = Peer::connect_as(server, PeerKind::Owner);
    watcher.initialize(json!({"clientName": "w"})).await;
    loop {
        let list = watcher.call("session/list", json!({})).await;
        let sessions = list["result"]["sessions"]
            .as_array()
            .expect("a list")
            .clone();
        let entry = sessions.iter().find(|entry| entry["sessionId"] == session);
        if entry.expect("it is there")["attached"] == false {
            break;
        }
        tokio::task::yield_now().await;
    }
    // In small steps, so that the watcher's connection does not time out.
    let mut left = detached;
    while !left.is_zero() {
        let step = left.min(Duration::from_secs(20));
        tokio::time::advance(step).await;
        watcher.call("environment/status", json!({})).await;
        left -= step;
    }
    let mut second = Peer::connect(server);
    let response = second
        .call("initialize", json!({"resumeSessionId": session}))
        .await;
    if response["error"].is_object() {
        assert_eq!(response["error"]["code"], -32600);
        assert_eq!(
            response["error"]["message"],
            format!("unknown session id {session}")
        );
    }
    response["result"]["sessionId"] == session
}

#[tokio::test(start_paused = true)]
async fn default_lease_is_thirty_seconds() {
    let just_before = Duration::from_millis(29_900);
    assert!(resumable_after(just_before, Settings::default(), json!({})).await);
    let boundary = Duration::from_secs(30);
    assert!(
        !resumable_after(boundary, Settings::default(), json!({})).await,
        "expiry wins at the boundary"
    );
}

#[tokio::test(start_paused = true)]
async fn requested_lease_applies() {
    let params = json!({"detachedTtlMs": 100_000});
    let just_before = Duration::from_millis(99_900);
    assert!(resumable_after(just_before, Settings::default(), params.clone()).await);
    assert!(!resumable_after(Duration::from_secs(100), Settings::default(), params).await);
}

#[tokio::test(start_paused = true)]
async fn unlimited_lease_lasts_if_allowed() {
    let settings = Settings {
        max_session_ttl: Ttl::Unlimited,
        ..Settings::default()
    };
    let days = Duration::from_secs(5 * 24 * 3600);
    assert!(resumable_after(days, settings, json!({"detachedTtlMs": null})).await);
}

#[tokio::test(start_paused = true)]
async fn lease_of_a_session_without_processes_is_a_minute() {
    let settings = Settings {
        max_session_ttl: Ttl::Unlimited,
        ..Settings::default()
    };
    for (params, seconds) in [
        (json!({"detachedTtlMs": null}), 60),
        (json!({"detachedTtlMs": 3_600_000}), 60),
        (json!({"detachedTtlMs": 20_000}), 20),
    ] {
        for (detached, resumable) in [(seconds - 1, true), (seconds, false)] {
            let server = server(settings.clone());
            let mut first = Peer::connect(&server);
            let session = first.initialize(params.clone()).await;
            let detached = Duration::from_secs(detached);
            let resumed = resumable_by_another(detached, &server, first, &session).await;
            assert_eq!(resumed, resumable, "{params} after {detached:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lease_over_the_maximum_is_rejected() {
    let server = server(Settings {
        max_session_ttl: Ttl::For(Duration::from_secs(60)),
        ..Settings::default()
    });
    let mut peer = Peer::connect(&server);
    for requested in [json!(60_001), json!(null)] {
        let rejected = peer
            .call("initialize", json!({"detachedTtlMs": requested}))
            .await;
        assert_eq!(rejected["error"]["code"], -32602, "{rejected}");
        assert_eq!(
            rejected["error"]["message"],
            "detachedTtlMs must be a number of at most 60000"
        );
    }
    peer.initialize(json!({"detachedTtlMs": 60_000})).await;
}

#[tokio::test(start_paused = true)]
async fn takeover_closes_the_old_connection_with_4001() {
    let server = server(Settings::default());
    let mut old = Peer::connect(&server);
    let session = old.initialize(json!({"clientName": "t"})).await;
    let mut new = Peer::connect(&server);
    let resume = json!({"resumeSessionId": session, "takeover": true});
    let response = new.call("initialize", resume).await;
    assert_eq!(response["result"]["sessionId"], session.as_str());
    assert!(matches!(
        old.received().await,
        Some(Received::Close(Some(4001), _))
    ));
}

#[tokio::test(start_paused = true)]
async fn session_list_is_for_the_owner_only() {
    let server = server(Settings::default());
    let mut unverified = Peer::connect(&server);
    let session = unverified.initialize(json!({"sessionLabel": "mine"})).await;
    let rejected = unverified.call("session/list", json!({})).await;
    assert_eq!(rejected["error"]["code"], -32011);
    let mut owner = Peer::connect_as(&server, PeerKind::Owner);
    owner.initialize(json!({})).await;
    let list = owner.call("session/list", json!({})).await;
    let entry = &list["result"]["sessions"][0];
    assert_eq!(entry["sessionId"], session.as_str());
    assert_eq!(entry["label"], "mine");
    assert_eq!(entry["attached"], true);
    assert_eq!(entry["expiresAtMs"], Value::Null);
    assert_eq!(entry["processes"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn closed_session_cannot_be_used_or_resumed() {
    let server = server(Settings::default());
    let mut peer = Peer::connect(&server);
    let session = peer.initialize(json!({})).await;
    assert_eq!(
        peer.call("session/close", json!({})).await["result"],
        json!({})
    );
    let start = json!({"processId": "p", "argv": ["true"], "cwd": "file:///"});
    let rejected = peer.call("process/start", start).await;
    assert_eq!(rejected["error"]["message"], "the session has ended");
    let mut other = Peer::connect(&server);
    let response = other
        .call("initialize", json!({"resumeSessionId": session}))
        .await;
    assert_eq!(
        response["error"]["message"],
        format!("unknown session id {session}")
    );
}
