//! Where there is no memory for what a client wants, that client is refused in the system's words,
//! and everybody else goes on.

use outpost_testkit::{Client, RpcError, Server, Start, Story, Transport, sh};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::json;

use crate::outpost;

const MIB: usize = 1024 * 1024;
const SYSTEM_SAYS: &str = "Cannot allocate memory (os error 12)";

/// A server whose memory can be counted: with one store for all threads, none of them has a
/// reserve of addresses that no limit reaches.
async fn countable(transport: Transport, args: &[&str]) -> Server {
    let server = outpost().on(transport).args(args);
    server.after("export MALLOC_ARENA_MAX=1").start().await
}

/// So many bytes more than it has, and no more, until it is dropped.
struct Only<'a>(&'a Server, Rlimit);

impl<'a> Only<'a> {
    fn more(server: &'a Server, bytes: usize) -> Self {
        let limit = server.vitals().size_kib() * 1024 + bytes as u64;
        let set = |new| prlimit(Pid::from_raw(server.pid()), Resource::As, new);
        let limited = Rlimit {
            current: Some(limit),
            maximum: getrlimit(Resource::As).maximum,
        };
        Only(server, set(limited).expect("a limit may be lowered"))
    }
}

impl Drop for Only<'_> {
    fn drop(&mut self) {
        prlimit(Pid::from_raw(self.0.pid()), Resource::As, self.1).expect("and raised again");
    }
}

/// A second client at work, who must not notice.
async fn goes_on(other: &Client, round: &str) {
    other.write("cat", format!("{round}\n"), round).await;
    other.sees("cat", &format!("{round}\n")).await;
    let id = format!("in {round}");
    assert_eq!(other.run(sh(&id, "echo hi")).await.text(), "hi\n");
}

/// A start with an environment of so many bytes.
fn large(id: &str, bytes: usize) -> Start {
    sh(id, "echo hi").env(&[("LARGE", &"x".repeat(bytes))])
}

#[tokio::test]
async fn a_message_that_cannot_be_held_is_skipped_and_answered() {
    for transport in [Transport::WebSocket, Transport::Unix] {
        let server = countable(transport, &[]).await;
        let client = server.client().await;
        let other = server.client().await;
        other.start(Start::new("cat", &["cat"]).stdin()).await;
        let limited = Only::more(&server, 12 * MIB);
        for number in 0..3 {
            let id = client.request_start(large("p", 40 * MIB)).await;
            let refused = RpcError::of(&client.unasked(number).await);
            assert_eq!(refused.code, -32600);
            assert!(refused.message.ends_with(SYSTEM_SAYS), "{refused:?}");
            assert!(!client.is_answered(id), "it was never known");
            client.is_alive().await;
            goes_on(&other, &format!("round {number}")).await;
        }
        drop(limited);
        let asked = client.start_fails(large("p", 40 * MIB)).await;
        assert!(
            asked.message.contains("Argument list too long"),
            "{asked:?}"
        );
        assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
        other.end("cat").await;
    }
}

#[tokio::test]
async fn a_line_that_cannot_be_held_is_skipped_and_answered() {
    let server = countable(Transport::Stdio, &[]).await;
    let client = server.client().await;
    let limited = Only::more(&server, 12 * MIB);
    client.request_start(large("p", 40 * MIB)).await;
    let refused = RpcError::of(&client.unasked(0).await);
    assert!(refused.message.ends_with(SYSTEM_SAYS), "{refused:?}");
    client.is_alive().await;
    drop(limited);
    assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
}

#[tokio::test]
async fn a_start_that_cannot_be_held_is_refused_and_leaves_its_name_free() {
    let server = countable(Transport::WebSocket, &[]).await;
    let client = server.client().await;
    let other = server.client().await;
    other.start(Start::new("cat", &["cat"]).stdin()).await;
    // Enough for the message, and not for what it holds.
    let limited = Only::more(&server, 24 * MIB);
    let refused = client.start_fails(large("p", 13 * MIB)).await;
    assert_eq!(refused.code, -32603);
    assert!(refused.message.ends_with(SYSTEM_SAYS), "{refused:?}");
    assert_eq!(
        client.call("process/list", json!({})).await["processes"],
        json!([])
    );
    goes_on(&other, "meanwhile").await;
    drop(limited);
    assert_eq!(client.run(sh("p", "echo hi")).await.text(), "hi\n");
    other.end("cat").await;
}

#[tokio::test]
async fn a_page_that_cannot_be_held_is_refused_and_stays_readable() {
    let retain = ["--retain-bytes", "16MiB"];
    let server = countable(Transport::WebSocket, &retain).await;
    let client = server.client().await;
    client.only_count("flood");
    client
        .start(sh("flood", "head -c 16000000 /dev/zero; sleep 1000"))
        .await;
    client.counts("flood", 16_000_000).await;
    let limited = Only::more(&server, 12 * MIB);
    let refused = client
        .fails("process/read", json!({"processId": "flood"}))
        .await;
    assert_eq!(refused.code, -32603);
    assert!(refused.message.ends_with(SYSTEM_SAYS), "{refused:?}");
    let page = client.read("flood", json!({"maxBytes": 65_536})).await;
    assert!(!Story::page_bytes(&page).is_empty());
    drop(limited);
    let page = client.read("flood", json!({})).await;
    assert_eq!(Story::page_bytes(&page).len(), 16_000_000);
    client.terminate("flood").await;
}
