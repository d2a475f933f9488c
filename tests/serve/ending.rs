//! Tests shutdown by SIGTERM and SIGINT.

use std::time::{Duration, Instant};

use outpost_testkit::{Client, ConnectionEnd, Server, Transport, deadline, frames, programs, sh};
use rustix::process::Signal;

use crate::outpost;

/// The time that the contract allows.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);

/// Much less than the grace period of processes.
const IMMEDIATE: Duration = Duration::from_millis(1500);

async fn server_and_client(transport: Transport) -> (Server, Client) {
    let server = outpost().on(transport).start().await;
    let client = server.client().await;
    (server, client)
}

/// Waits for the server's exit, checks that no process with its tag is left, and returns how long
/// it took.
async fn wait_shutdown(server: &mut Server, code: i32, since: Instant) -> Duration {
    let output = server.wait().await;
    let took = since.elapsed();
    assert_eq!(output.code, Some(code), "{}", output.stderr);
    let left = server.tag().living();
    assert!(left.is_empty(), "left alive: {left:?}");
    assert!(took < SHUTDOWN_LIMIT, "{took:?}");
    took
}

#[tokio::test]
async fn signal_closes_connections_with_1001_and_exits_with_0() {
    for signal in [Signal::TERM, Signal::INT] {
        for transport in [Transport::WebSocket, Transport::Unix] {
            let (mut server, client) = server_and_client(transport).await;
            // This connection sends no message, but it is accepted.
            let silent = server.connect().await;
            silent.send_frames(vec![frames::ping(b"in?")]).await;
            silent.pong(b"in?").await;
            let since = Instant::now();
            server.signal(signal);
            assert_eq!(
                client.connection_end().await,
                ConnectionEnd::Code(1001),
                "{signal:?}"
            );
            assert_eq!(
                silent.connection_end().await,
                ConnectionEnd::Code(1001),
                "{signal:?}"
            );
            let took = wait_shutdown(&mut server, 0, since).await;
            assert!(took < IMMEDIATE, "there was nothing to wait for: {took:?}");
        }
    }
}

#[tokio::test]
async fn processes_are_terminated_first() {
    for signal in [Signal::TERM, Signal::INT] {
        let (mut server, client) = server_and_client(Transport::WebSocket).await;
        let file = server.dir().join("last words");
        let script = format!(
            "trap '' HUP; trap 'echo bye > \"{}\"; exit 0' TERM; echo ready; \
             while :; do sleep 0.02; done",
            file.display()
        );
        for (id, tty) in [("pipes", false), ("pty", true)] {
            client.start(sh(id, &script).with("tty", tty)).await;
            client.wait_output(id, "ready").await;
        }
        let since = Instant::now();
        server.signal(signal);
        let took = wait_shutdown(&mut server, 0, since).await;
        assert!(took < IMMEDIATE, "all of them went when asked: {took:?}");
        assert_eq!(std::fs::read_to_string(&file).expect("stderr"), "bye\n");
    }
}

#[tokio::test]
async fn processes_ignoring_sigterm_are_killed_after_two_seconds() {
    let (mut server, client) = server_and_client(Transport::WebSocket).await;
    for (id, tty) in [("pipes", false), ("pty", true)] {
        client
            .start(sh(id, programs::IGNORES_TERM).with("tty", tty))
            .await;
        client.wait_output(id, "ready").await;
    }
    let since = Instant::now();
    server.signal(Signal::TERM);
    let took = wait_shutdown(&mut server, 0, since).await;
    assert!(
        took >= Duration::from_millis(1900),
        "they had no time: {took:?}"
    );
}

#[tokio::test]
async fn second_signal_exits_at_once() {
    for (first, second) in [
        (Signal::TERM, Signal::TERM),
        (Signal::INT, Signal::INT),
        (Signal::TERM, Signal::INT),
    ] {
        let (mut server, client) = server_and_client(Transport::WebSocket).await;
        client.start(sh("p", programs::IGNORES_TERM)).await;
        client.wait_output("p", "ready").await;
        server.signal(first);
        assert_eq!(client.connection_end().await, ConnectionEnd::Code(1001));
        let since = Instant::now();
        server.signal(second);
        server.wait().await;
        let took = since.elapsed();
        assert!(took < Duration::from_secs(1), "{took:?}");
        server.tag().gone().await;
    }
}

#[tokio::test]
async fn trees_and_daemons_end_with_the_server() {
    for kind in ["auto", "subreaper"] {
        let mut server = outpost().args(&["--trees", kind]).start().await;
        let client = server.client().await;
        let scripts = [
            programs::LEAVES_ITS_GROUP,
            programs::DAEMON,
            programs::LEAVES_A_DAEMON,
            programs::FORKS_AND_LEAVES,
            programs::HOLDS_THE_PIPE,
        ];
        for (n, script) in scripts.iter().enumerate() {
            let id = format!("p{n}");
            client.start(sh(&id, script)).await;
            client.wait_output(&id, "ready").await;
        }
        for id in ["p2", "p3", "p4"] {
            client.exited(id).await;
        }
        // The server, two processes with their leaders, and three without.
        server.tag().alive(1 + 2 * 2 + 3).await;
        let since = Instant::now();
        server.signal(Signal::TERM);
        wait_shutdown(&mut server, 0, since).await;
    }
}

#[tokio::test]
async fn detached_sessions_end_with_the_server() {
    let (mut server, client) = server_and_client(Transport::WebSocket).await;
    client.start(sh("p", "echo ready; exec sleep 1000")).await;
    client.wait_output("p", "ready").await;
    client.cut().await;
    let since = Instant::now();
    server.signal(Signal::TERM);
    wait_shutdown(&mut server, 0, since).await;
}

#[tokio::test]
async fn connections_during_shutdown_are_rejected() {
    let (mut server, client) = server_and_client(Transport::WebSocket).await;
    client.start(sh("p", programs::IGNORES_TERM)).await;
    client.wait_output("p", "ready").await;
    server.signal(Signal::TERM);
    client.connection_end().await;
    let connected = tokio::net::TcpStream::connect(server.address()).await;
    let rejected = match connected {
        Err(_) => true,
        // Without a listener the kernel may have connected the socket to itself: the port is one
        // that it also gives to clients.
        Ok(stream) if stream.local_addr().ok() == stream.peer_addr().ok() => true,
        // The connection is in the backlog and will not be accepted.
        Ok(stream) => {
            let mut byte = [0];
            let readable = deadline::expect_soon("the end of the connection", stream.readable());
            readable.await.expect("readable");
            matches!(stream.try_read(&mut byte), Ok(0) | Err(_))
        }
    };
    assert!(rejected);
    server.wait().await;
}

#[tokio::test]
async fn unread_connection_does_not_delay_the_exit() {
    let (mut server, client) = server_and_client(Transport::WebSocket).await;
    client.only_count("flood");
    client.start(sh("flood", programs::FLOODS)).await;
    client.wait_count("flood", 1024 * 1024).await;
    client.stop_reading();
    let since = Instant::now();
    server.signal(Signal::TERM);
    wait_shutdown(&mut server, 0, since).await;
}

#[tokio::test]
async fn hundred_processes_end_together() {
    let (mut server, client) = server_and_client(Transport::WebSocket).await;
    for n in 0..100 {
        client
            .request_start(sh(&format!("p{n}"), programs::IGNORES_TERM))
            .await;
    }
    for n in 0..100 {
        client.wait_output(&format!("p{n}"), "ready").await;
    }
    let since = Instant::now();
    server.signal(Signal::TERM);
    wait_shutdown(&mut server, 0, since).await;
}
