//! Getting through to somebody who listens on the host.

use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use outpost_sandbox::Network;

use crate::cell::{Cell, is_root, text};

#[test]
fn no_socket_of_the_host_is_within_reach() {
    let cell = Cell::new();
    // Inside the workspace, where it may even be written to.
    let stream = cell.inside("stream");
    let datagram = cell.inside("datagram");
    let _listener = UnixListener::bind(&stream).expect("it listens");
    let _receiver = UnixDatagram::bind(&datagram).expect("it listens");
    for (attempt, path) in [
        ("unix-stream", &stream),
        ("unix-datagram", &datagram),
        ("unix-pair", &datagram),
    ] {
        cell.free(&[attempt, text(path)]).succeeds();
        cell.confined(&[attempt, text(path)]).fails("not permitted");
    }
}

#[test]
fn nor_one_without_a_path() {
    let cell = Cell::new();
    let name = format!("outpost-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let _listener = UnixListener::bind_addr(&address).expect("it listens");
    cell.free(&["unix-abstract", &name]).succeeds();
    cell.confined(&["unix-abstract", &name])
        .fails("not permitted");
}

/// A port at which whoever connects gets a byte.
fn answering_tcp() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("it listens");
    let port = listener.local_addr().expect("it has one").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = (&stream).write_all(b"x");
        }
    });
    port.to_string()
}

#[test]
fn the_hosts_network_is_not_there() {
    let cell = Cell::new();
    let port = answering_tcp();
    cell.free(&["tcp", &port]).succeeds();
    cell.confined(&["tcp", &port]).fails("refused");

    let socket = UdpSocket::bind("127.0.0.1:0").expect("it listens");
    let port = socket.local_addr().expect("it has one").port().to_string();
    std::thread::spawn(move || {
        while let Ok((_, from)) = socket.recv_from(&mut [0; 8]) {
            let _ = socket.send_to(b"x", from);
        }
    });
    cell.free(&["udp", &port]).succeeds();
    cell.confined(&["udp", &port])
        .fails("temporarily unavailable");

    if is_root() {
        cell.free(&["raw"]).succeeds();
    }
    cell.confined(&["raw"]).fails("not permitted");
}

#[test]
fn with_a_network_it_is() {
    let mut cell = Cell::new();
    cell.plan.network = Network::Enabled;
    let port = answering_tcp();
    cell.confined(&["tcp", &port]).succeeds();
    cell.confined(&["raw"]).fails("not permitted");
    // So is whoever listens at a path that can be seen. Nobody promises otherwise.
    let path = cell.outside("stream");
    let _listener = UnixListener::bind(&path).expect("it listens");
    cell.confined(&["unix-stream", text(&path)]).succeeds();
}

/// They have no path that a plan could withhold, so a network isn't enough.
#[test]
fn even_then_a_socket_without_a_path_is_out_of_reach() {
    let mut cell = Cell::new();
    cell.plan.network = Network::Enabled;
    let means = cell.sandbox().preflight().expect("all is here");
    let name = format!("outpost-test-network-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let _listener = UnixListener::bind_addr(&address).expect("it listens");
    cell.free(&["unix-abstract", &name]).succeeds();
    let outcome = cell.confined(&["unix-abstract", &name]);
    // Older kernels have no such rule, and the documentation says so.
    if means.landlock >= 6 {
        outcome.fails("not permitted");
    }
}

/// A pair leads nowhere, if it is one of unix sockets: others have a host of their own behind them.
#[test]
fn pairs_are_of_unix_sockets_alone() {
    let unix = libc::AF_UNIX.to_string();
    let inet = libc::AF_INET.to_string();
    for network in [Network::Restricted, Network::Enabled] {
        let mut cell = Cell::new();
        cell.plan.network = network;
        cell.confined(&["pair", &unix]).succeeds();
        // The kernel's own answer is that there are no such pairs: it was asked.
        cell.free(&["pair", &inet]).fails("Operation not supported");
        cell.confined(&["pair", &inet]).fails("not permitted");
    }
}
