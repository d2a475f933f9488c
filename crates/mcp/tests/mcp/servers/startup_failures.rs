//! Failures during the startup of a server.

use std::{sync::Arc, time::Duration};

use outpost_client::{Error, Executor, Pending};
use outpost_mcp::{CallError, ExecutorProvider, Limits, ServerFailure};
use serde_json::json;

use super::harness::{TestEnvironment, call, in_each_environment, misbehaving};

#[tokio::test]
async fn unknown_protocol_version_is_a_failure() {
    in_each_environment(async |environment| {
        let server = misbehaving(&["revision", "1999-01-01"]);
        let pool = environment.one(&server, &Limits::default());
        let called = call(&pool, "pid", json!({})).await;
        let Err(CallError::NotReady { why, .. }) = called else {
            panic!("{called:?}")
        };
        assert_eq!(
            why.to_string(),
            "the server uses MCP version 1999-01-01, which is not supported"
        );
        pool.close().await;
        // An older supported version is accepted.
        let pool = environment.one(
            &misbehaving(&["revision", "2024-11-05"]),
            &Limits::default(),
        );
        call(&pool, "pid", json!({})).await.unwrap();
        pool.close().await;
    })
    .await;
}

/// A provider whose executor never responds.
struct Unresponsive;

impl ExecutorProvider for Unresponsive {
    fn executor(&self) -> Pending<'_, Arc<dyn Executor>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn unresponsive_executor_is_reported_as_such() {
    let mut environment = TestEnvironment::remote().await;
    environment.executors.remote = Some(Arc::new(Unresponsive));
    let limits = Limits {
        startup: Duration::from_millis(50),
        ..Limits::default()
    };
    for server in [
        misbehaving(&["silent"]),
        json!({"url": "http://127.0.0.1:1/"}),
    ] {
        let pool = environment.one(&server, &limits);
        let called = call(&pool, "pid", json!({})).await;
        let Err(CallError::NotReady { why, .. }) = called else {
            panic!("{called:?}")
        };
        assert!(
            matches!(&*why, ServerFailure::Executor(Error::TimedOut { .. })),
            "{why:?}"
        );
        pool.close().await;
    }
}
