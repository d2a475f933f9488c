//! SOCKS5.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fixture::{Fixture, TestDialer, config, echo_server, start, start_with};

/// Sends a greeting and a request. Returns the connection and the reply's code.
async fn request(fixture: &Fixture, command: u8, address: &[u8], port: u16) -> (TcpStream, u8) {
    let socks = fixture.address.socks.expect("an address");
    let mut stream = TcpStream::connect(socks).await.expect("connect");
    stream.write_all(&[5, 2, 2, 0]).await.expect("write");
    let mut method = [0; 2];
    stream.read_exact(&mut method).await.expect("a method");
    assert_eq!(method, [5, 0]);
    let request = [&[5, command, 0], address, &port.to_be_bytes()].concat();
    stream.write_all(&request).await.expect("write");
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).await.expect("a reply");
    assert_eq!(reply[0], 5);
    (stream, reply[1])
}

fn name(name: &str) -> Vec<u8> {
    let length = u8::try_from(name.len()).expect("a short name");
    [&[3, length], name.as_bytes()].concat()
}

#[tokio::test]
async fn names_and_addresses_are_connected() {
    let mut fixture = start_with(
        TestDialer::default().server("a.test", echo_server().await),
        config(json!({"domains": {"a.test": "allow", "8.8.8.1": "allow"}})),
        None,
        outpost_netproxy::Limits::default(),
    );
    for (address, host) in [(name("A.test"), "a.test"), (vec![1, 8, 8, 8, 1], "8.8.8.1")] {
        let (mut stream, reply) = request(&fixture, 1, &address, 5000).await;
        assert_eq!(reply, 0);
        stream.write_all(b"hello").await.expect("write");
        let mut echoed = [0; 5];
        stream.read_exact(&mut echoed).await.expect("read");
        assert_eq!(&echoed, b"hello");
        let decision = fixture.decision().await;
        assert_eq!(decision, format!("allow allow socks5_tcp {host} 5000"));
    }
}

#[tokio::test]
async fn other_requests_get_their_codes() {
    let fixture = start(TestDialer::default().name("gone.test", "8.8.4.4"));
    let mapped = [&[4_u8][..], &[0; 10], &[255, 255, 127, 0, 0, 1]].concat();
    for (command, address, port, code) in [
        (1, name("other.example"), 80, 2),
        (1, name("evil.test"), 80, 2),
        (1, vec![1, 127, 0, 0, 1], 80, 2),
        (1, mapped, 80, 2),
        (1, name("127.0.0.1"), 80, 2),
        (1, name("gone.test"), 80, 5),
        (1, name("a b"), 80, 1),
        (1, name("gone.test"), 0, 1),
        (2, name("gone.test"), 80, 7),
        (3, vec![1, 0, 0, 0, 0], 0, 7),
    ] {
        assert_eq!(
            request(&fixture, command, &address, port).await.1,
            code,
            "{address:?}"
        );
    }
}

#[tokio::test]
async fn other_versions_and_methods_are_closed() {
    let fixture = start(TestDialer::default());
    let socks = fixture.address.socks.expect("an address");
    for (greeting, reply) in [
        (&[4_u8, 1, 0, 80, 1, 2, 3, 4, 0][..], &[][..]),
        (&[5, 1, 2], &[5, 255]),
        (b"GET / HTTP/1.1\r\n\r\n", &[]),
    ] {
        let mut stream = TcpStream::connect(socks).await.expect("connect");
        stream.write_all(greeting).await.expect("write");
        let mut received = Vec::new();
        // Unread bytes reset the connection.
        let _ = stream.read_to_end(&mut received).await;
        assert_eq!(received, reply);
    }
}

#[tokio::test]
async fn limited_mode_refuses_all_connections() {
    let limited = config(json!({"mode": "limited"}));
    let dialer = TestDialer::default().server("a.test", echo_server().await);
    let limits = outpost_netproxy::Limits::default();
    let mut fixture = start_with(dialer, limited, None, limits);
    for (port, reason) in [(443, "mitm_required"), (80, "method_not_allowed")] {
        assert_eq!(request(&fixture, 1, &name("a.test"), port).await.1, 2);
        let allowed = fixture.decision().await;
        assert_eq!(allowed, format!("allow allow socks5_tcp a.test {port}"));
        let refused = fixture.decision().await;
        assert_eq!(refused, format!("deny {reason} socks5_tcp a.test {port}"));
    }
}
