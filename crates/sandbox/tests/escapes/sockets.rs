//! Connections to sockets of the host.

use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use outpost_sandbox::Network;

use crate::fixture::{Fixture, is_root, text};

#[test]
fn abstract_sockets_of_the_host_are_unreachable() {
    let fixture = Fixture::new();
    let name = format!("outpost-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("address");
    let _listener = UnixListener::bind_addr(&address).expect("bind");
    fixture
        .unsandboxed(&["unix-abstract", &name])
        .assert_success();
    // Names belong to a network namespace.
    fixture
        .supervised(&["unix-abstract", &name])
        .assert_fails(if fixture.has_unix_sockets() {
            "refused"
        } else {
            "not permitted"
        });
}

/// Listens on a port and sends a byte to every connection.
fn tcp_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener.local_addr().expect("local address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = (&stream).write_all(b"x");
        }
    });
    port.to_string()
}

#[test]
fn host_network_is_unreachable() {
    let fixture = Fixture::new();
    let port = tcp_server();
    fixture.unsandboxed(&["tcp", &port]).assert_success();
    fixture.supervised(&["tcp", &port]).assert_fails("refused");

    let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
    let port = socket
        .local_addr()
        .expect("local address")
        .port()
        .to_string();
    std::thread::spawn(move || {
        while let Ok((_, from)) = socket.recv_from(&mut [0; 8]) {
            let _ = socket.send_to(b"x", from);
        }
    });
    fixture.unsandboxed(&["udp", &port]).assert_success();
    fixture
        .sandboxed(&["udp", &port])
        .assert_fails("temporarily unavailable");

    if is_root() {
        fixture.unsandboxed(&["raw"]).assert_success();
    }
    fixture.sandboxed(&["raw"]).assert_fails("not permitted");
}

#[test]
fn enabled_network_reaches_the_host() {
    let mut fixture = Fixture::new();
    fixture.plan.network = Network::Enabled;
    let port = tcp_server();
    fixture.sandboxed(&["tcp", &port]).assert_success();
    fixture.sandboxed(&["raw"]).assert_fails("not permitted");
    // Visible unix sockets are reachable too; that is not promised otherwise.
    let path = fixture.outside("stream");
    let _listener = UnixListener::bind(&path).expect("bind");
    fixture
        .sandboxed(&["unix-stream", text(&path)])
        .assert_success();
}

/// An abstract socket has no path that a plan could grant.
#[test]
fn abstract_sockets_are_unreachable_with_enabled_network() {
    let mut fixture = Fixture::new();
    fixture.plan.network = Network::Enabled;
    let support = fixture.sandbox().preflight().expect("host is supported");
    let name = format!("outpost-test-network-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("address");
    let _listener = UnixListener::bind_addr(&address).expect("bind");
    fixture
        .unsandboxed(&["unix-abstract", &name])
        .assert_success();
    let outcome = fixture.sandboxed(&["unix-abstract", &name]);
    // Older kernels can't restrict them; docs/sandbox.md says so.
    if support.landlock >= 6 {
        outcome.assert_fails("not permitted");
    }
}

#[test]
fn socket_pairs_are_unix_only() {
    let unix = libc::AF_UNIX.to_string();
    let inet = libc::AF_INET.to_string();
    for network in [Network::Restricted, Network::Enabled] {
        let mut fixture = Fixture::new();
        fixture.plan.network = network;
        fixture.sandboxed(&["pair", &unix]).assert_success();
        // The kernel itself supports no such pairs.
        fixture
            .unsandboxed(&["pair", &inet])
            .assert_fails("Operation not supported");
        fixture
            .sandboxed(&["pair", &inet])
            .assert_fails("not permitted");
    }
}
