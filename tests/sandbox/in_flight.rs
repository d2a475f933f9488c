//! Tests descriptors in flight, which the kernel counts per user.

use std::path::Path;

use outpost_testkit::Start;

use super::SandboxDirs;
use crate::ready;

const PYTHON: &str = "/usr/bin/python3";

/// Sends descriptors to itself until the kernel refuses, and keeps them in flight.
const ATTACK: &str = "
import array, resource, socket, time
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * 253))]
pairs = []
full = False
while not full:
    pairs.append(socket.socketpair())
    pairs[-1][0].setblocking(False)
    try:
        while True:
            pairs[-1][0].sendmsg([b'x'], rights)
    except BlockingIOError:
        pass
    except OSError:
        full = True
print('full', flush=True)
time.sleep(1000)
";

/// Connects to itself, which needs descriptors that the helper sends to the server.
const CONNECT: &str = "
import socket
listener = socket.create_server(('127.0.0.1', 0))
socket.create_connection(listener.getsockname())
print('connected')
";

#[tokio::test]
async fn descriptors_in_flight_do_not_stop_other_starts() {
    assert!(
        Path::new(PYTHON).exists(),
        "{PYTHON} is missing: install Python 3"
    );
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    let start = |id: &str, script| Start::new(id, &[PYTHON, "-c", script]).cwd(&dirs.workspace());
    let sandboxed = |id: &str, script| start(id, script).with("sandbox", dirs.sandbox(&[]));
    let attacks = [
        ("sandboxed", sandboxed("sandboxed", ATTACK)),
        ("free", start("free", ATTACK)),
    ];
    // A free process of root has no limit.
    let count = if rustix::process::geteuid().is_root() {
        1
    } else {
        2
    };
    for (id, attack) in attacks.into_iter().take(count) {
        client.start(attack).await;
        client.wait_output(id, "full").await;
        let log = client.run(start(&format!("{id}-1"), CONNECT)).await;
        assert_eq!(log.stdout(), "connected\n", "{}", log.stderr());
        let log = client.run(sandboxed(&format!("{id}-2"), CONNECT)).await;
        assert_eq!(log.stdout(), "connected\n", "{}", log.stderr());
        client.terminate_and_wait(id).await;
    }
}
