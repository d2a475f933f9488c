//! SIGTERM and SIGINT.

use std::time::{Duration, Instant};

use outpost_testkit::{Client, Goodbye, Server, Transport, frames, programs, sh};
use rustix::process::Signal;

use crate::outpost;

/// What the contract allows.
const WITHIN: Duration = Duration::from_secs(5);

/// Much less than the grace that processes have.
const AT_ONCE: Duration = Duration::from_millis(1500);

async fn serving(transport: Transport) -> (Server, Client) {
    let server = outpost().on(transport).start().await;
    let client = server.client().await;
    (server, client)
}

/// Waits for the end of a server that was told to; says how long it took. Nothing but the server
/// has been alive with its mark then.
async fn ends(server: &mut Server, code: i32, since: Instant) -> Duration {
    let ended = server.ended().await;
    let took = since.elapsed();
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    let left = server.mark().living();
    assert!(left.is_empty(), "left alive: {left:?}");
    assert!(took < WITHIN, "{took:?}");
    took
}

#[tokio::test]
async fn a_signal_closes_connections_with_1001_and_ends_with_0() {
    for signal in [Signal::TERM, Signal::INT] {
        for transport in [Transport::WebSocket, Transport::Unix] {
            let (mut server, client) = serving(transport).await;
            // It has said nothing, but it is let in.
            let silent = server.connect().await;
            silent.send_frames(vec![frames::ping(b"in?")]).await;
            silent.pong(b"in?").await;
            let since = Instant::now();
            server.signal(signal);
            assert_eq!(client.goodbye().await, Goodbye::Code(1001), "{signal:?}");
            assert_eq!(silent.goodbye().await, Goodbye::Code(1001), "{signal:?}");
            let took = ends(&mut server, 0, since).await;
            assert!(took < AT_ONCE, "there was nothing to wait for: {took:?}");
        }
    }
}

#[tokio::test]
async fn processes_are_asked_to_end_first() {
    for signal in [Signal::TERM, Signal::INT] {
        let (mut server, client) = serving(Transport::WebSocket).await;
        let file = server.folder().join("last words");
        let script = format!(
            "trap '' HUP; trap 'echo bye > \"{}\"; exit 0' TERM; echo ready; \
             while :; do sleep 0.02; done",
            file.display()
        );
        for (id, tty) in [("pipes", false), ("pty", true)] {
            client.start(sh(id, &script).with("tty", tty)).await;
            client.sees(id, "ready").await;
        }
        let since = Instant::now();
        server.signal(signal);
        let took = ends(&mut server, 0, since).await;
        assert!(took < AT_ONCE, "all of them went when asked: {took:?}");
        assert_eq!(std::fs::read_to_string(&file).expect("last words"), "bye\n");
    }
}

#[tokio::test]
async fn processes_that_do_not_listen_are_killed_after_two_seconds() {
    let (mut server, client) = serving(Transport::WebSocket).await;
    for (id, tty) in [("pipes", false), ("pty", true)] {
        client
            .start(sh(id, programs::IGNORES_TERM).with("tty", tty))
            .await;
        client.sees(id, "ready").await;
    }
    let since = Instant::now();
    server.signal(Signal::TERM);
    let took = ends(&mut server, 0, since).await;
    assert!(
        took >= Duration::from_millis(1900),
        "they had no time: {took:?}"
    );
}

#[tokio::test]
async fn a_second_signal_ends_at_once() {
    for (first, second) in [
        (Signal::TERM, Signal::TERM),
        (Signal::INT, Signal::INT),
        (Signal::TERM, Signal::INT),
    ] {
        let (mut server, client) = serving(Transport::WebSocket).await;
        client.start(sh("p", programs::IGNORES_TERM)).await;
        client.sees("p", "ready").await;
        server.signal(first);
        assert_eq!(client.goodbye().await, Goodbye::Code(1001));
        let since = Instant::now();
        server.signal(second);
        server.ended().await;
        let took = since.elapsed();
        assert!(took < Duration::from_secs(1), "{took:?}");
        server.mark().gone().await;
    }
}

#[tokio::test]
async fn trees_and_daemons_end_with_the_server() {
    for kind in ["auto", "keeper"] {
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
            client.sees(&id, "ready").await;
        }
        for id in ["p2", "p3", "p4"] {
            client.exited(id).await;
        }
        // The server, two with their leaders and three without.
        server.mark().alive(1 + 2 * 2 + 3).await;
        let since = Instant::now();
        server.signal(Signal::TERM);
        ends(&mut server, 0, since).await;
    }
}

#[tokio::test]
async fn processes_of_sessions_without_a_connection_end_with_the_server() {
    let (mut server, client) = serving(Transport::WebSocket).await;
    client.start(sh("p", "echo ready; exec sleep 1000")).await;
    client.sees("p", "ready").await;
    client.cut().await;
    let since = Instant::now();
    server.signal(Signal::TERM);
    ends(&mut server, 0, since).await;
}

#[tokio::test]
async fn while_it_ends_nobody_is_let_in() {
    let (mut server, client) = serving(Transport::WebSocket).await;
    client.start(sh("p", programs::IGNORES_TERM)).await;
    client.sees("p", "ready").await;
    server.signal(Signal::TERM);
    client.goodbye().await;
    let connected = tokio::net::TcpStream::connect(server.address()).await;
    let refused = match connected {
        Err(_) => true,
        // Nobody will ever accept it.
        Ok(stream) => {
            let mut byte = [0];
            stream.readable().await.expect("news");
            matches!(stream.try_read(&mut byte), Ok(0) | Err(_))
        }
    };
    assert!(refused);
    server.ended().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_delays_nothing() {
    let (mut server, client) = serving(Transport::WebSocket).await;
    client.only_count("flood");
    client.start(sh("flood", programs::FLOODS)).await;
    client.counts("flood", 1024 * 1024).await;
    client.stop_reading();
    let since = Instant::now();
    server.signal(Signal::TERM);
    ends(&mut server, 0, since).await;
}

#[tokio::test]
async fn a_hundred_processes_end_together() {
    let (mut server, client) = serving(Transport::WebSocket).await;
    for n in 0..100 {
        client
            .request_start(sh(&format!("p{n}"), programs::IGNORES_TERM))
            .await;
    }
    for n in 0..100 {
        client.sees(&format!("p{n}"), "ready").await;
    }
    let since = Instant::now();
    server.signal(Signal::TERM);
    ends(&mut server, 0, since).await;
}
