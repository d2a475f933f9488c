//! Sandboxed processes whose only network is a port that the server listens on, inside their namespace.

use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use outpost_sandbox::{Level, PrepareError};

use crate::fixture::{Fixture, Outcome, is_root, program, text};

/// The port inside.
const PORT: u16 = 43128;

fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.plan.listen = vec![PORT];
    fixture
}

/// Runs an attempt whose connections to the port are answered with a byte.
fn managed(fixture: &Fixture, arguments: &[&str]) -> Outcome {
    let program = program();
    let argv = [&[text(&program)], arguments].concat();
    fixture.run_with_listeners(&argv, |listeners| {
        for listener in listeners {
            answer(listener);
        }
    })
}

/// Sends a byte to every connection.
fn answer(listener: TcpListener) {
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = (&stream).write_all(b"x");
        }
    });
}

fn host_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener.local_addr().expect("local address").port();
    answer(listener);
    port.to_string()
}

#[test]
fn only_the_server_is_reachable() {
    let fixture = fixture();
    let inside = PORT.to_string();
    managed(&fixture, &["tcp", &inside]).assert_success();
    managed(&fixture, &["tcp-inside"]).assert_success();
    let host = host_server();
    fixture.unsandboxed(&["tcp", &host]).assert_success();
    managed(&fixture, &["tcp", &host]).assert_fails("refused");
    // The port belongs to the namespace, not to the host.
    fixture
        .unsandboxed(&["tcp", &inside])
        .assert_fails("refused");
}

#[test]
fn other_sockets_of_the_host_are_unreachable() {
    let fixture = fixture();
    let path = fixture.outside("stream");
    let _listener = UnixListener::bind(&path).expect("bind");
    let refused = "not permitted";
    fixture
        .unsandboxed(&["unix-stream", text(&path)])
        .assert_success();
    managed(&fixture, &["unix-stream", text(&path)]).assert_fails(refused);

    let name = format!("outpost-test-managed-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("address");
    let _abstract = UnixListener::bind_addr(&address).expect("bind");
    fixture
        .unsandboxed(&["unix-abstract", &name])
        .assert_success();
    let has_unix_sockets = fixture.has_unix_sockets();
    let expected = if has_unix_sockets { "refused" } else { refused };
    managed(&fixture, &["unix-abstract", &name]).assert_fails(expected);

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
    managed(&fixture, &["udp", &port]).assert_fails("temporarily unavailable");

    if is_root() {
        fixture.unsandboxed(&["raw"]).assert_success();
    }
    managed(&fixture, &["raw"]).assert_fails(refused);
}

/// A program could otherwise accept connections in the place of the server.
#[test]
fn program_inherits_no_listener() {
    let fixture = fixture();
    let argv = [
        "/bin/sh",
        "-c",
        "ls -l /proc/self/fd; exec 3<&- ; ls /proc/self/fd",
    ];
    let outcome = fixture.run_with_listeners(&argv, drop);
    outcome.assert_success();
    assert!(
        !outcome.stdout().contains("socket:"),
        "{}",
        outcome.stdout()
    );
}

#[test]
fn closed_listener_refuses_connections() {
    let fixture = fixture();
    let program = program();
    let argv = [text(&program), "tcp", &PORT.to_string()].map(str::to_owned);
    let script = format!(
        "until ! {} 2>/dev/null; do :; done; {}",
        argv.join(" "),
        argv.join(" ")
    );
    let outcome = fixture.run_with_listeners(&["/bin/sh", "-c", &script], drop);
    outcome.assert_fails("refused");
}

#[test]
fn several_ports_arrive_in_order() {
    let mut fixture = Fixture::new();
    fixture.plan.listen = vec![PORT, 1080, 8080];
    let outcome = fixture.run_with_listeners(&["/bin/true"], |listeners| {
        let port = |one: &TcpListener| one.local_addr().expect("an address").port();
        assert_eq!(
            listeners.iter().map(port).collect::<Vec<_>>(),
            [PORT, 1080, 8080]
        );
    });
    outcome.assert_success();
}

#[test]
fn network_that_can_not_be_enforced_is_an_error() {
    let mut fixture = fixture();
    let prepare = |fixture: &Fixture| fixture.sandbox.prepare(&fixture.plan, fixture.program());
    fixture.plan.listen = (1..=33).collect();
    let error = prepare(&fixture).map(drop).expect_err("too many");
    assert!(matches!(error, PrepareError::TooManyPorts(33)), "{error}");
    if !crate::HAS_LANDLOCK {
        return;
    }
    fixture.plan.listen = vec![PORT];
    let fixture = fixture.at(Level::Landlock);
    let error = prepare(&fixture).map(drop).expect_err("no namespaces");
    assert!(matches!(error, PrepareError::ManagedNetwork), "{error}");
}
