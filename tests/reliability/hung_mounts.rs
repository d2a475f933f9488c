//! Tests that a file system that does not answer costs only the requests that need it.

#[path = "../../crates/process/tests/held_file/mod.rs"]
mod held_file;

use held_file::HeldFile;
use outpost_testkit::{Start, deadline, file_uri, sh};
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

/// Waits until a process opens the held file.
async fn held_open() {
    let own = format!(" {} ", std::process::id());
    deadline::poll_until("an open of the held file", || {
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        let is_breaking = |line: &str| line.contains("BREAKING") && line.contains(&own);
        locks.lines().any(is_breaking).then_some(())
    })
    .await;
}

/// The program hangs when the sandbox's helper executes it.
#[tokio::test]
async fn hung_sandboxed_start_is_cancelled() {
    for end in ["process/terminate", "session/close"] {
        let (server, client) = ready_with(&[]).await;
        let held = HeldFile::new();
        let path = held.path();
        let start = Start::new("hung", &[path.to_str().expect("a plain path")]);
        let workspace = server.dir().join("workspace");
        std::fs::create_dir(&workspace).expect("a directory");
        let start = start.cwd(&workspace).with(
            "sandbox",
            json!({
                "permissions": {
                    "type": "managed",
                    "file_system": {"type": "restricted", "entries": [
                        {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
                        {"path": {"type": "special", "value": {"kind": "project_roots"}}, "access": "write"},
                    ]},
                    "network": "restricted",
                },
                "cwd": file_uri(&workspace),
                "workspaceRoots": [file_uri(&workspace)],
                "windowsSandboxLevel": "disabled",
                "useLegacyLandlock": false,
            }),
        );
        let started = client.request_start(start).await;
        held_open().await;
        let params = match end {
            "session/close" => json!({}),
            _ => json!({"processId": "hung"}),
        };
        client.call(end, params).await;
        let rejected = client.response(started).await.expect_err("it is cancelled");
        // Not "it took longer than 20s".
        let message = &rejected.message;
        assert!(
            message.contains("was cancelled") || message.contains("session"),
            "{end}: {message}"
        );
        let left: Vec<_> = std::fs::read_dir(&workspace).expect("it exists").collect();
        assert_eq!(left.len(), 0, "{end}: {left:?}");
        drop(held);
    }
}
