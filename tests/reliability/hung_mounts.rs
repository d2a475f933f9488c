//! Tests that a file system that does not answer costs only the requests that need it.

#[path = "../../crates/process/tests/held_file/mod.rs"]
mod held_file;

use held_file::HeldFile;
use outpost_testkit::{Start, sh};
use serde_json::json;

use crate::{outpost, ready_with};

#[tokio::test]
async fn hung_start_delays_no_other_and_can_be_terminated() {
    for trees in ["auto", "subreaper", "group"] {
        let (server, client) = ready_with(&["--trees", trees]).await;
        let held = HeldFile::new();
        let path = held.path();
        let path = path.to_str().expect("a plain path");
        let mut starts = Vec::new();
        for number in 0..4 {
            let start = Start::new(&format!("hung{number}"), &[path]);
            starts.push(client.request_start(start).await);
        }
        let other = server.client().await;
        assert_eq!(
            other.run(sh("p", "echo hi")).await.text(),
            "hi\n",
            "{trees}"
        );
        for (number, start) in starts.into_iter().enumerate() {
            let terminate = json!({"processId": format!("hung{number}")});
            let terminated = client.call("process/terminate", terminate).await;
            assert_eq!(terminated, json!({"running": true}));
            let rejected = client.response(start).await.expect_err("it is cancelled");
            assert!(rejected.message.contains("was cancelled"), "{rejected:?}");
        }
        // Their children are killed while the file system still does not answer.
        client.call("session/close", json!({})).await;
        assert_eq!(
            other.run(sh("q", "echo hi")).await.text(),
            "hi\n",
            "{trees}"
        );
        drop(held);
    }
}

#[tokio::test]
async fn server_ends_while_a_start_hangs() {
    for trees in ["auto", "subreaper", "group"] {
        let mut server = outpost().args(&["--trees", trees]).start().await;
        let client = server.client().await;
        let held = HeldFile::new();
        let path = held.path();
        let start = Start::new("hung", &[path.to_str().expect("a plain path")]);
        client.request_start(start).await;
        client.check_alive().await;
        server.signal(rustix::process::Signal::TERM);
        assert_eq!(server.wait().await.code, Some(0), "{trees}");
        server.tag().gone().await;
    }
}
