//! Tests `limits`, and `endedBy` and `usage` of `process/exited`.

use serde_json::json;

use super::dialect::{Dialect, with_every_dialect};

#[tokio::test]
async fn limits_hold_in_every_dialect() {
    with_every_dialect(async |dialect, _, client| {
        let limits = json!({"limits": {"openFiles": 77, "cpuSeconds": 1000}});
        let outcome = dialect
            .run(client, "p", "ulimit -n; ulimit -t", limits)
            .await;
        assert_eq!(outcome.stdout, "77\n1000\n");
        let told = outcome.whole.get("endedBy");
        match dialect {
            Dialect::Spawn => assert_eq!(told, Some(&json!("exit"))),
            Dialect::Command => assert_eq!(told, None),
        }
    })
    .await;
}

#[tokio::test]
async fn limits_are_refused_in_every_dialect() {
    with_every_dialect(async |dialect, _, client| {
        for (limits, code, message) in [
            (
                json!({"processes": 0}),
                -32602,
                "limits.processes must be greater than 0",
            ),
            // As every member that cannot be decoded.
            (json!({"memory": 1}), -32600, "unknown field `memory`"),
        ] {
            let params = dialect.sh("p", "true", json!({"limits": limits}));
            let error = dialect.call_fails(client, params).await;
            assert_eq!(error.code, code);
            assert!(error.message.contains(message), "{}", error.message);
        }
    })
    .await;
}

#[tokio::test]
async fn spawned_process_tells_what_ended_it() {
    with_every_dialect(async |dialect, _, client| {
        if dialect != Dialect::Spawn {
            return;
        }
        for (script, more, cause) in [
            ("kill -TERM $$", json!({}), "signal"),
            ("exec sleep 1000", json!({"timeoutMs": 200}), "timeout"),
            (
                "while :; do :; done",
                json!({"limits": {"cpuSeconds": 1}}),
                "cpuLimit",
            ),
        ] {
            let outcome = dialect.run(client, "p", script, more).await;
            assert_eq!(outcome.whole["endedBy"], cause);
            assert!(outcome.whole["usage"]["maxRssBytes"].is_u64());
        }
    })
    .await;
}
