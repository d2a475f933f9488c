//! What keeps a server from being used, and how that is told.

use std::{sync::Arc, time::Duration};

use outpost_client::Error;
use outpost_mcp::{
    CallError, Command, Failure, LaunchError, Launcher, Launchers, Launching, Limits, Placing,
};
use serde_json::json;

use crate::stage::{Stage, call, odd, on_each_stage};

#[tokio::test]
async fn a_revision_that_nobody_knows_is_a_reason_to_leave() {
    on_each_stage(async |stage| {
        let server = odd(&["revision", "1999-01-01"]);
        let ensemble = stage.one(&server, &Limits::default());
        let called = call(&ensemble, "pid", json!({})).await;
        let Err(CallError::NotReady { why, .. }) = called else {
            panic!("{called:?}")
        };
        assert_eq!(
            why.to_string(),
            "the server speaks revision 1999-01-01 of the protocol, which isn't known here"
        );
        ensemble.close().await;
        // An older one that is known is as good as the one that was asked for.
        let ensemble = stage.one(&odd(&["revision", "2024-11-05"]), &Limits::default());
        call(&ensemble, "pid", json!({})).await.unwrap();
        ensemble.close().await;
    })
    .await;
}

/// An executor that takes connections and says nothing.
struct Silent;

impl Launcher for Silent {
    fn launch<'a>(&'a self, _: &'a str, _: &'a Command, _: &'a Limits) -> Launching<'a> {
        Box::pin(std::future::pending())
    }

    fn place(&self) -> Placing<'_> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_silent_executor_is_told_from_a_silent_server() {
    let mut stage = Stage::remote().await;
    stage.launchers = Launchers {
        remote: Some(Arc::new(Silent)),
        ..stage.launchers
    };
    let limits = Limits {
        startup: Duration::from_millis(50),
        ..Limits::default()
    };
    for server in [odd(&["silent"]), json!({"url": "http://127.0.0.1:1/"})] {
        let ensemble = stage.one(&server, &limits);
        let called = call(&ensemble, "pid", json!({})).await;
        let Err(CallError::NotReady { why, .. }) = called else {
            panic!("{called:?}")
        };
        assert!(
            matches!(
                &*why,
                Failure::Launch(LaunchError::Place(Error::TimedOut { .. }))
            ),
            "{why:?}"
        );
        ensemble.close().await;
    }
}
