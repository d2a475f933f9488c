//! Tests that a sandboxed start that is cancelled, at any moment, leaves nothing.

use std::time::Duration;

use outpost_testkit::{Server, deadline};
use serde_json::json;

use super::SandboxDirs;
use crate::outpost;

/// Runs a test with each kind of process tree, and checks then that processes and placeholders are gone,
/// and that a start gets a turn.
async fn leaves_nothing(test: impl AsyncFn(&Server, &SandboxDirs)) {
    for trees in ["auto", "subreaper"] {
        let args = ["--trees", trees, "--session-ttl", "50ms"];
        let server = outpost().args(&args).start().await;
        let dirs = SandboxDirs::new();
        let client = server.client().await;
        assert_eq!(client.run(dirs.script("before", "true")).await.code(), 0);
        let before = server.tag().living().len();
        test(&server, &dirs).await;
        server.tag().alive(before).await;
        deadline::poll_until("the placeholders to be removed", || {
            let mut left = dirs.workspace().read_dir().expect("it exists");
            left.next().is_none().then_some(())
        })
        .await;
        assert_eq!(client.run(dirs.script("after", "true")).await.code(), 0);
    }
}

/// The time after which a start is cancelled. All of them together last as long as a start.
async fn cancellation_time(number: u32) {
    // sleep: the moment within the start varies
    tokio::time::sleep(Duration::from_micros(500) * (number % 40)).await;
}

#[tokio::test]
async fn terminated_start_leaves_nothing() {
    leaves_nothing(async |server, dirs| {
        let client = server.client().await;
        for number in 0..80 {
            let id = format!("p{number}");
            let start = dirs.script(&id, "exec sleep 1000");
            let start = client.request_start(start).await;
            cancellation_time(number).await;
            let id = json!({"processId": id});
            client.call("process/terminate", id).await;
            if let Err(error) = client.response(start).await {
                assert!(error.message.contains("was cancelled"), "{error:?}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn start_of_an_ended_connection_leaves_nothing() {
    leaves_nothing(async |server, dirs| {
        for number in 0..40 {
            let client = server.client().await;
            for id in ["first", "second"] {
                let start = dirs.script(id, "exec sleep 1000");
                client.request_start(start).await;
            }
            cancellation_time(number).await;
            drop(client);
        }
    })
    .await;
}
