//! Unix sockets inside a sandbox without a network, and attempts to reach others with them.

use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::fixture::{Fixture, text};

/// A socket of the host that no process connects to.
fn host_socket(path: &Path) -> UnixListener {
    let listener = UnixListener::bind(path).expect("bind");
    listener.set_nonblocking(true).expect("set non-blocking");
    listener
}

/// Asserts that no connection was made since the last one was accepted.
fn assert_untouched(listener: &UnixListener) {
    let accepted = listener.accept().map(drop);
    let error = accepted.expect_err("was connected to");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn sandboxed_processes_connect_to_each_other() {
    let fixture = Fixture::new();
    if !fixture.has_unix_sockets() {
        return;
    }
    for attempt in ["unix-inside", "unix-inside-packets", "unix-inside-waiting"] {
        let path = fixture.inside(attempt);
        fixture.supervised(&[attempt, text(&path)]).assert_success();
    }
    fixture
        .supervised(&["unix-inside", "/dev/shm/socket"])
        .assert_success();
    fixture
        .supervised(&["unix-inside-abstract", "outpost-test-inside"])
        .assert_success();
    fixture.supervised(&["tcp-inside"]).assert_success();
}

/// Python's managers and its fork server listen on a unix socket with a path.
#[test]
fn python_multiprocessing_works() {
    let fixture = Fixture::new();
    let python = Path::new("/usr/bin/python3");
    if !fixture.has_unix_sockets() {
        return;
    }
    assert!(python.exists(), "{python:?} is missing: install Python 3");
    let script = "
import multiprocessing
if __name__ == '__main__':
    with multiprocessing.Manager() as manager:
        shared = manager.list(range(3))
        context = multiprocessing.get_context('forkserver')
        process = context.Process(target=shared.append, args=(7,))
        process.start()
        process.join()
        print(list(shared), process.exitcode)
";
    let file = fixture.inside("main.py");
    std::fs::write(&file, script).expect("write script");
    let outcome = fixture.run_supervised(&[text(python), text(&file)]);
    outcome.assert_success();
    assert_eq!(outcome.stdout(), "[0, 1, 2, 7] 0\n");
}

#[test]
fn sockets_of_the_host_are_unreachable() {
    let fixture = Fixture::new();
    // The first is in a read-only directory, the second in a writable one.
    for path in [fixture.outside("socket"), fixture.inside("socket")] {
        let listener = host_socket(&path);
        let link = fixture.inside("link");
        std::os::unix::fs::symlink(&path, &link).expect("link");
        for path in [&path, &link] {
            fixture
                .unsandboxed(&["unix-stream", text(path)])
                .assert_success();
            listener.accept().expect("was connected to");
            fixture
                .supervised(&["unix-stream", text(path)])
                .assert_fails("not permitted");
        }
        std::fs::remove_file(&link).expect("remove");
        assert_untouched(&listener);
    }
}

#[test]
fn other_names_of_a_host_socket_are_unreachable() {
    for attempt in ["unix-renamed", "unix-linked"] {
        let fixture = Fixture::new();
        let (own, other) = (fixture.inside("own"), fixture.inside("other"));
        let listener = host_socket(&other);
        fixture
            .unsandboxed(&[attempt, text(&own), text(&other)])
            .assert_success();
        listener.accept().expect("was connected to");
        let fixture = Fixture::new();
        let (own, other) = (fixture.inside("own"), fixture.inside("other"));
        let listener = host_socket(&other);
        fixture
            .supervised(&[attempt, text(&own), text(&other)])
            .assert_fails("not permitted");
        assert_untouched(&listener);
    }
}

/// The address is in memory that another thread changes while the call is checked.
#[test]
fn changed_address_does_not_reach_the_host() {
    let fixture = Fixture::new();
    let other = fixture.inside("other");
    let listener = host_socket(&other);
    let attempt = |own: &str| {
        let own = fixture.inside(own);
        ["unix-race-address", text(&own), text(&other)].map(str::to_owned)
    };
    let unsandboxed = attempt("1");
    fixture
        .unsandboxed(&unsandboxed.each_ref().map(String::as_str))
        .assert_success();
    listener.accept().expect("was connected to");
    let sandboxed = attempt("2");
    // The last error depends on what the address was at that moment.
    let sandboxed = fixture.supervised(&sandboxed.each_ref().map(String::as_str));
    assert_eq!(sandboxed.code(), 1);
    assert_untouched(&listener);
}

/// The descriptor is replaced by another thread while the call is checked.
#[test]
fn changed_descriptor_does_not_reach_the_host() {
    let fixture = Fixture::new();
    let other = fixture.inside("other");
    let listener = host_socket(&other);
    let attempt = ["unix-race-descriptor", text(&other)];
    fixture.unsandboxed(&attempt).assert_success();
    listener.accept().expect("was connected to");
    let sandboxed = fixture.supervised(&attempt);
    assert_eq!(sandboxed.code(), 1);
    assert_untouched(&listener);
}

/// A sandbox reaches only the sockets that were created in it.
#[test]
fn socket_of_another_sandbox_is_unreachable() {
    let fixture = Fixture::new();
    if !fixture.has_unix_sockets() {
        return;
    }
    let (path, fifo) = (fixture.inside("socket"), fixture.inside("fifo"));
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).expect("create FIFO");
    let serving = ["unix-serve", text(&path), text(&fifo)];
    std::thread::scope(|scope| {
        let server = scope.spawn(|| fixture.supervised(&serving));
        assert_eq!(std::fs::read(&fifo).expect("read"), b"ready");
        fixture
            .supervised(&["unix-stream", text(&path)])
            .assert_fails("not permitted");
        // A process outside may connect, which ends it.
        fixture
            .unsandboxed(&["unix-stream", text(&path)])
            .assert_success();
        server.join().expect("join").assert_success();
    });
}

/// After the server is gone, connections fail, and nothing is reached.
#[test]
fn connections_fail_without_a_supervisor() {
    let fixture = Fixture::new();
    if !fixture.has_unix_sockets() {
        return;
    }
    let path = fixture.inside("socket");
    let listener = host_socket(&path);
    fixture
        .sandboxed(&["unix-stream", text(&path)])
        .assert_fails("not implemented");
    fixture
        .sandboxed(&["tcp-inside"])
        .assert_fails("not implemented");
    assert_untouched(&listener);
}

/// Each datagram has an address of its own, which a supervisor can't check.
#[test]
fn datagram_sockets_are_rejected() {
    let fixture = Fixture::new();
    let path = fixture.inside("socket");
    let _receiver = std::os::unix::net::UnixDatagram::bind(&path).expect("bind");
    for attempt in ["unix-datagram", "unix-pair"] {
        fixture
            .unsandboxed(&[attempt, text(&path)])
            .assert_success();
        fixture
            .supervised(&[attempt, text(&path)])
            .assert_fails("not permitted");
    }
}
