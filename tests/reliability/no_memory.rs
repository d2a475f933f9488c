//! Tests that when memory is short, only the request that needs it fails, with the system's
//! message.

use outpost_testkit::{Client, EventLog, Server, Start, Transport, sh};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::json;

use crate::outpost;

const MIB: usize = 1024 * 1024;
const SYSTEM_ERROR: &str = "Cannot allocate memory (os error 12)";

/// Starts a server with a single malloc arena, so that no thread has reserved address space that
/// the limit doesn't affect.
async fn server_with_one_arena(transport: Transport, args: &[&str]) -> Server {
    let server = outpost().on(transport).args(args);
    server
        .after_shell("export MALLOC_ARENA_MAX=1")
        .start()
        .await
}

/// Limits the server to this many bytes more than it has, until dropped.
struct MemoryLimit<'a>(&'a Server, Rlimit);

impl<'a> MemoryLimit<'a> {
    fn more(server: &'a Server, bytes: usize) -> Self {
        let limit = server.stats().size_kib() * 1024 + bytes as u64;
        let set = |new| prlimit(Pid::from_raw(server.pid()), Resource::As, new);
        let limited = Rlimit {
            current: Some(limit),
            maximum: getrlimit(Resource::As).maximum,
        };
        MemoryLimit(server, set(limited).expect("a limit may be lowered"))
    }
}

impl Drop for MemoryLimit<'_> {
    fn drop(&mut self) {
        prlimit(Pid::from_raw(self.0.pid()), Resource::As, self.1).expect("and raised again");
    }
}

/// Checks that a second client isn't affected.
async fn check_unaffected(other: &Client, round: &str) {
    other.write("cat", format!("{round}\n"), round).await;
    other.wait_output("cat", &format!("{round}\n")).await;
    let id = format!("in {round}");
    assert_eq!(other.run(sh(&id, "echo hi")).await.text(), "hi\n");
}

/// A start with an environment of this size.
fn large(id: &str, bytes: usize) -> Start {
    sh(id, "echo hi").env(&[("LARGE", &"x".repeat(bytes))])
}

#[tokio::test]
async fn unallocatable_message_is_skipped_and_answered() {
    for transport in [Transport::WebSocket, Transport::Unix] {
        let server = server_with_one_arena(transport, &[]).await;
        let client = server.client().await;
        let other = server.client().await;
        other.start(Start::new("cat", &["cat"]).stdin()).await;
        let limited = MemoryLimit::more(&server, 12 * MIB);
        for number in 0..3 {
            let id = client.request_start(large("p", 40 * MIB)).await;
            let rejected = client.response(id).await.unwrap_err();
            assert_eq!(rejected.code, -32600);
            assert!(rejected.message.ends_with(SYSTEM_ERROR), "{rejected:?}");
            client.check_alive().await;
            check_unaffected(&other, &format!("round {number}")).await;
        }
        drop(limited);
        let request = client.start_fails(large("p", 40 * MIB)).await;
        assert!(
            request.message.contains("Argument list too long"),
            "{request:?}"
        );
        assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
        other.terminate_and_wait("cat").await;
    }
}

#[tokio::test]
async fn unallocatable_line_is_skipped_and_answered() {
    let server = server_with_one_arena(Transport::Stdio, &[]).await;
    let client = server.client().await;
    let limited = MemoryLimit::more(&server, 12 * MIB);
    let id = client.request_start(large("p", 40 * MIB)).await;
    let rejected = client.response(id).await.unwrap_err();
    assert!(rejected.message.ends_with(SYSTEM_ERROR), "{rejected:?}");
    client.check_alive().await;
    drop(limited);
    assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
}

#[tokio::test]
async fn unallocatable_start_fails_and_frees_its_id() {
    let server = server_with_one_arena(Transport::WebSocket, &[]).await;
    let client = server.client().await;
    let other = server.client().await;
    other.start(Start::new("cat", &["cat"]).stdin()).await;
    // Enough for the message, but not for its content.
    let limited = MemoryLimit::more(&server, 24 * MIB);
    let rejected = client.start_fails(large("p", 13 * MIB)).await;
    assert_eq!(rejected.code, -32603);
    assert!(rejected.message.ends_with(SYSTEM_ERROR), "{rejected:?}");
    assert_eq!(
        client.call("process/list", json!({})).await["processes"],
        json!([])
    );
    check_unaffected(&other, "meanwhile").await;
    drop(limited);
    assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
    other.terminate_and_wait("cat").await;
}

#[tokio::test]
async fn unallocatable_page_fails_and_stays_readable() {
    let retain = ["--retain-bytes", "16MiB"];
    let server = server_with_one_arena(Transport::WebSocket, &retain).await;
    let client = server.client().await;
    client.only_count("flood");
    client
        .start(sh("flood", "head -c 16000000 /dev/zero; sleep 1000"))
        .await;
    client.wait_count("flood", 16_000_000).await;
    let limited = MemoryLimit::more(&server, 12 * MIB);
    let rejected = client
        .call_fails("process/read", json!({"processId": "flood"}))
        .await;
    assert_eq!(rejected.code, -32603);
    assert!(rejected.message.ends_with(SYSTEM_ERROR), "{rejected:?}");
    let page = client.read("flood", json!({"maxBytes": 65_536})).await;
    assert!(!EventLog::page_bytes(&page).is_empty());
    drop(limited);
    let page = client.read("flood", json!({})).await;
    assert_eq!(EventLog::page_bytes(&page).len(), 16_000_000);
    client.terminate("flood").await;
}

/// When memory is exhausted, the kernel kills the process with the highest score.
#[tokio::test]
async fn programs_are_killed_before_the_server() {
    for trees in ["auto", "subreaper"] {
        let server = outpost().args(&["--trees", trees]).start().await;
        let client = server.client().await;
        let score = |pid: i32| {
            let score = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj"));
            let score = score.expect("the process runs");
            score.trim().parse::<i32>().expect("a number")
        };
        let own = score(server.pid());
        let script = "read line; cat /proc/self/oom_score_adj";
        client.start(sh("p", script).stdin()).await;
        client.write("p", "\n", "w").await;
        let log = client.exited("p").await;
        assert_eq!(log.stdout(), format!("{}\n", (own + 500).min(1000)));
    }
}
