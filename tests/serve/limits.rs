//! Tests `--max-processes`, `--max-connections` and `--concurrent-requests`.

use std::time::Duration;

use outpost_testkit::{ConnectionEnd, Start, deadline, http_client, sh};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::AsyncReadExt as _;

use crate::{outpost, ready_with};

/// Raises the limit on open files: each connection needs a descriptor in this process too.
fn raise_open_files() {
    let files = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: files.maximum,
        ..files
    };
    setrlimit(Resource::Nofile, raised).expect("a soft limit may be raised to the hard one");
}

#[tokio::test]
async fn start_beyond_max_processes_is_32001() {
    let (server, client) = ready_with(&["--max-processes", "3"]).await;
    for n in 0..3 {
        client.start(sh(&format!("p{n}"), "read x").stdin()).await;
    }
    let other = server.client().await;
    for client in [&client, &other] {
        let error = client.start_fails(sh("more", "true")).await;
        assert_eq!(error.parts(), (-32001, "Server overloaded; retry later."));
        assert_eq!(client.listed("more").await, None);
    }
    client.terminate_and_wait("p1").await;
    // The slot is free a moment after the close.
    let deadline = std::time::Instant::now() + deadline::DEADLINE;
    while let Err(error) = other
        .try_call(
            "process/start",
            json!({"processId": "more", "argv": ["true"], "cwd": "file:///", "env": {}}),
        )
        .await
    {
        assert_eq!(error.code, -32001);
        assert!(
            std::time::Instant::now() < deadline,
            "the slot was not freed"
        );
    }
    other.closed("more").await;
}

#[tokio::test]
async fn failed_start_holds_no_slot() {
    let (_server, client) = ready_with(&["--max-processes", "1"]).await;
    for _ in 0..20 {
        let error = client
            .start_fails(Start::new("bad", &["/no/such/program"]))
            .await;
        assert_eq!(error.code, -32603);
    }
    client.run(Start::new("good", &["true"])).await;
}

#[tokio::test]
async fn connection_beyond_max_connections_is_503() {
    let server = outpost().args(&["--max-connections", "2"]).start().await;
    let (one, other) = (server.client().await, server.client().await);
    let response = http_client::get(server.address(), "/", http_client::UPGRADE).await;
    assert_eq!(response.status, 503);
    one.check_alive().await;
    other.close().await;
    let deadline = std::time::Instant::now() + deadline::DEADLINE;
    while http_client::get(server.address(), "/", http_client::UPGRADE)
        .await
        .status
        == 503
    {
        assert!(
            std::time::Instant::now() < deadline,
            "the slot was not freed"
        );
    }
    one.check_alive().await;
}

#[tokio::test]
async fn connections_that_do_not_initialize_give_way() {
    let server = outpost().args(&["--max-connections", "3"]).start().await;
    let busy = server.client().await;
    busy.start(sh("p", "exec sleep 1000")).await;
    let silent = [server.connect().await, server.connect().await];
    let deadline = std::time::Instant::now() + deadline::DEADLINE;
    // Not before they had time to initialize.
    while http_client::get(server.address(), "/", http_client::UPGRADE)
        .await
        .status
        == 503
    {
        assert!(std::time::Instant::now() < deadline, "none gave way");
    }
    // They were opened almost at the same time.
    let [one, other] = &silent;
    let end = tokio::select! {
        end = one.connection_end() => end,
        end = other.connection_end() => end,
    };
    assert_eq!(end, ConnectionEnd::Code(1013));
    busy.check_alive().await;
}

#[tokio::test]
async fn probes_are_answered_while_all_connections_are_in_use() {
    let server = outpost().args(&["--max-connections", "1"]).start().await;
    for path in ["/readyz", "/healthz"] {
        let response = http_client::get(server.address(), path, &[]).await;
        assert_eq!(response.status, 200, "{path}");
    }
    let client = server.client().await;
    for path in ["/readyz", "/healthz"].repeat(10) {
        let response = http_client::get(server.address(), path, &[]).await;
        assert_eq!(response.status, 200, "{path}");
    }
    client.check_alive().await;
}

#[tokio::test]
async fn sockets_without_a_request_do_not_block_probes() {
    raise_open_files();
    let server = outpost().start().await;
    let mut silent = Vec::new();
    for _ in 0..1100 {
        silent.push(
            tokio::net::TcpStream::connect(server.address())
                .await
                .expect("it listens"),
        );
    }
    let response = http_client::get(server.address(), "/readyz", &[]).await;
    assert_eq!(response.status, 200);
    // The oldest ones gave way, long before the time for their request was over.
    let mut byte = [0];
    let closed = silent[0].read(&mut byte);
    let closed = tokio::time::timeout(Duration::from_secs(5), closed).await;
    assert_eq!(closed.expect("it is closed").expect("no error"), 0);
    server.client().await.check_alive().await;
}

#[tokio::test]
async fn owner_connects_while_all_connections_are_in_use() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = format!("unix://{}", directory.path().join("s").display());
    let limits = ["--max-connections", "2", "--max-sessions", "2"];
    let server = outpost().listen(&socket).args(&limits).start().await;
    let clients = [server.client().await, server.client().await];
    let refused = http_client::get(server.address(), "/", http_client::UPGRADE).await;
    assert_eq!(refused.status, 503);
    let owner = server.connect_to(&socket).await;
    owner.handshake().await;
    let sessions = owner.call("session/list", json!({})).await;
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(3));
    for client in &clients {
        client.check_alive().await;
    }
}

#[tokio::test]
async fn sessions_of_clients_that_left_do_not_lock_out_others() {
    let server = outpost().args(&["--max-sessions", "8"]).start().await;
    for _ in 0..20 {
        let client = server.connect().await;
        let params = json!({"clientName": "x", "detachedTtlMs": 86_400_000});
        client.call("initialize", params).await;
        client.close().await;
    }
    let client = server.client().await;
    client.run(Start::new("p", &["true"])).await;
}

#[tokio::test]
async fn concurrency_of_one_works() {
    let (_server, client) = ready_with(&["--concurrent-requests", "1"]).await;
    let mut starts = Vec::new();
    for n in 0..20 {
        starts.push(
            client
                .request_start(sh(&format!("p{n}"), "echo hello"))
                .await,
        );
    }
    for (n, start) in starts.into_iter().enumerate() {
        assert!(client.response(start).await.is_ok());
        assert_eq!(client.closed(&format!("p{n}")).await.text(), "hello\n");
    }
}

#[tokio::test]
async fn long_poll_does_not_delay_requests_at_concurrency_one() {
    let (_server, client) = ready_with(&["--concurrent-requests", "1"]).await;
    client.start(sh("p", "read x; echo $x").stdin()).await;
    let read = json!({"processId": "p", "waitMs": 600_000});
    let read = client.request("process/read", read).await;
    client.run(Start::new("q", &["true"])).await;
    client.check_alive().await;
    client.signal("p", "continue").await;
    assert!(!client.has_response(read));
    client.write("p", "hello\n", "w").await;
    assert!(client.response(read).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn default_server_holds_a_thousand_processes_and_connections() {
    raise_open_files();
    let server = outpost().start().await;
    let mut clients = Vec::new();
    for _ in 0..1000 {
        let client = server.client().await;
        client.start(Start::new("cat", &["cat"]).stdin()).await;
        clients.push(client);
    }
    for client in &clients {
        client.write_last("cat", "still here\n").await;
    }
    for client in &clients {
        assert_eq!(client.closed("cat").await.text(), "still here\n");
    }
    let rss = server.stats().rss_kib();
    assert!(rss < 200_000, "{rss} KiB for a thousand of each");
}
