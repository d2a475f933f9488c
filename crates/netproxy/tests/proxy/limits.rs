//! Limits, the end of a proxy, and forwarded ports.

use std::sync::Arc;
use std::time::Duration;

use outpost_netproxy::{Limits, Listeners, Parts, Proxy, ProxyConfig};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};

use crate::fixture::{TestDialer, config, echo_server, start, start_with};

#[tokio::test]
async fn thousand_connections_are_relayed_at_once() {
    let fixture = start(TestDialer::default().server("a.test", echo_server().await));
    let mut tunnels = Vec::new();
    for _ in 0..1000 {
        tunnels.push(fixture.connect("a.test:443").await.expect("allowed"));
    }
    for (number, tunnel) in tunnels.iter_mut().enumerate() {
        tunnel
            .write_all(&number.to_be_bytes())
            .await
            .expect("write");
    }
    for (number, tunnel) in tunnels.iter_mut().enumerate() {
        let mut echoed = [0; size_of::<usize>()];
        tunnel.read_exact(&mut echoed).await.expect("read");
        assert_eq!(usize::from_be_bytes(echoed), number);
    }
    assert_eq!(fixture.proxy.activity().decisions(), 1000);
}

#[tokio::test]
async fn further_connections_wait_for_a_place() {
    let all = Arc::new(Semaphore::new(2));
    let limits = Limits {
        connections: 2,
        all_connections: Arc::clone(&all),
        ..Limits::default()
    };
    let dialer = TestDialer::default().server("a.test", echo_server().await);
    let fixture = start_with(dialer, config(json!({"enableSocks5": false})), None, limits);
    let first = fixture.connect("a.test:443").await.expect("allowed");
    let _second = fixture.connect("a.test:443").await.expect("allowed");
    let third = fixture.connect("a.test:443");
    tokio::pin!(third);
    let waited = tokio::time::timeout(Duration::from_millis(100), &mut third).await;
    assert!(waited.is_err(), "there is no place");
    drop(first);
    third.await.expect("allowed");
}

#[tokio::test]
async fn connection_ends_at_the_byte_limit() {
    let limits = Limits {
        bytes: 10_000,
        ..Limits::default()
    };
    let dialer = TestDialer::default().server("a.test", echo_server().await);
    let fixture = start_with(dialer, config(json!({})), None, limits);
    let mut tunnel = fixture.connect("a.test:443").await.expect("allowed");
    let mut echoed = vec![0; 4_000];
    tunnel.write_all(&echoed).await.expect("write");
    tunnel
        .read_exact(&mut echoed)
        .await
        .expect("below the limit");
    let _ = tunnel.write_all(&[0; 8_000]).await;
    let mut rest = Vec::new();
    let ended = tunnel.read_to_end(&mut rest).await;
    assert!(ended.is_err() || rest.len() < 8_000);
}

#[tokio::test]
async fn silent_and_idle_connections_are_closed() {
    let limits = Limits {
        head_timeout: Duration::from_millis(50),
        idle_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let dialer = TestDialer::default().server("a.test", echo_server().await);
    let fixture = start_with(dialer, config(json!({})), None, limits);
    let mut silent = TcpStream::connect(fixture.address.http)
        .await
        .expect("connect");
    let socks = fixture.address.socks.expect("an address");
    let mut silent_socks = TcpStream::connect(socks).await.expect("connect");
    let mut idle = fixture.connect("a.test:443").await.expect("allowed");
    for stream in [&mut silent, &mut silent_socks, &mut idle] {
        let mut rest = Vec::new();
        // Ends, or the test hangs.
        let _ = stream.read_to_end(&mut rest).await;
    }
}

#[tokio::test]
async fn long_heads_are_rejected() {
    let limits = Limits {
        head_bytes: 8 * 1024,
        ..Limits::default()
    };
    let fixture = start_with(TestDialer::default(), config(json!({})), None, limits);
    let long = "x".repeat(20_000);
    let request = format!("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: {long}\r\n\r\n");
    let response = fixture.send(&request).await;
    assert!(
        response.is_empty() || response.starts_with("HTTP/1.1 431 "),
        "{response}"
    );
}

#[tokio::test]
async fn dropped_proxy_closes_its_connections() {
    let fixture = start(TestDialer::default().server("a.test", echo_server().await));
    let mut tunnel = fixture.connect("a.test:443").await.expect("allowed");
    let address = fixture.address;
    drop(fixture);
    let mut rest = Vec::new();
    let _ = tunnel.read_to_end(&mut rest).await;
    let refused = TcpStream::connect(address.http).await;
    assert!(refused.is_err(), "the listener is closed");
}

#[tokio::test]
async fn events_that_are_not_read_are_dropped_and_counted() {
    let dialer = TestDialer::default().server("a.test", echo_server().await);
    let (listeners, address) = Listeners::bind_loopback(false).expect("bind");
    let (events, _unread) = mpsc::channel(1);
    let parts = Parts {
        config: config(json!({})),
        decider: None,
        dialer: Arc::new(dialer),
        events,
        limits: Limits::default(),
    };
    let proxy = Proxy::start(listeners, parts).expect("start");
    for _ in 0..3 {
        let mut stream = TcpStream::connect(address.http).await.expect("connect");
        let head = "CONNECT a.test:1 HTTP/1.1\r\nHost: a.test:1\r\n\r\n";
        stream.write_all(head.as_bytes()).await.expect("write");
        stream.read_u8().await.expect("a response");
    }
    let activity = proxy.activity();
    assert_eq!((activity.decisions(), activity.dropped_events()), (3, 2));
}

#[tokio::test]
async fn forwarded_port_reaches_the_loopback_address() {
    let port = echo_server().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("an address");
    let listeners = Listeners {
        forwards: vec![(port, listener)],
        ..Listeners::default()
    };
    let (events, _receiver) = mpsc::channel(1);
    let parts = Parts {
        config: ProxyConfig::default(),
        decider: None,
        dialer: Arc::new(TestDialer::default()),
        events,
        limits: Limits::default(),
    };
    let proxy = Proxy::start(listeners, parts).expect("start");
    let mut stream = TcpStream::connect(address).await.expect("connect");
    stream.write_all(b"hello").await.expect("write");
    let mut echoed = [0; 5];
    stream.read_exact(&mut echoed).await.expect("read");
    assert_eq!(&echoed, b"hello");
    assert_eq!(proxy.activity().bytes(), 10);
}
