//! Graceful shutdown of servers.

use std::{collections::BTreeMap, time::Duration};

use outpost_mcp::{CallError, Command, Limits};
use outpost_testkit::{TestTag, deadline};
use rmcp::transport::Transport as _;
use serde_json::json;

use super::harness::{call, in_each_environment, misbehaving, soon};

#[tokio::test]
async fn server_receives_cancellation_before_shutdown() {
    in_each_environment(async |environment| {
        let directory = tempfile::tempdir().unwrap();
        let received = directory.path().join("received");
        let mut server = misbehaving(&["slow-reader", received.to_str().unwrap()]);
        server["tool_timeout_sec"] = json!(0.1);
        let limits = Limits {
            // Never reached, even on a slow machine.
            stdin_close_grace: Duration::from_secs(60),
            ..Limits::default()
        };
        let pool = environment.one(&server, &limits);
        let called = call(&pool, "hang", json!({})).await;
        assert!(
            matches!(called, Err(CallError::TimedOut { .. })),
            "{called:?}"
        );
        soon("close", pool.close()).await;
        deadline::poll_until("the cancellation", || received.exists().then_some(())).await;
    })
    .await;
}

#[tokio::test]
async fn server_gets_sigterm_before_sigkill() {
    in_each_environment(async |environment| {
        let directory = tempfile::tempdir().unwrap();
        let started = directory.path().join("started");
        let terminated = directory.path().join("terminated");
        let script = format!(
            "trap '' HUP; trap 'echo > {}; exit 0' TERM; echo > {}; while :; do sleep 0.05; done",
            terminated.display(),
            started.display()
        );
        for closed in [true, false] {
            let tag = TestTag::new();
            let command = Command {
                args: vec!["-c".into(), script.clone().into()],
                env: BTreeMap::from([(TestTag::VARIABLE.to_owned(), tag.as_str().into())]),
                ..Command::new("/bin/sh")
            };
            let limits = Limits {
                stdin_close_grace: Duration::from_millis(50),
                ..Limits::default()
            };
            let mut transport = environment.launch(&command, &limits).await;
            deadline::poll_until("the server", || started.exists().then_some(())).await;
            if closed {
                soon("close", transport.close()).await.unwrap();
            }
            drop(transport);
            tag.gone().await;
            assert!(
                terminated.exists(),
                "{}, closed: {closed}",
                environment.name
            );
            std::fs::remove_file(&terminated).unwrap();
            std::fs::remove_file(&started).unwrap();
        }
    })
    .await;
}
