//! Tests connections that sandboxed processes wait for.

use outpost_testkit::{Client, deadline};

use super::SandboxDirs;
use crate::ready;

/// Connects more often than its listener's queue is long, and prints what each connection that does not wait
/// failed with.
const CONNECT: &str = r"
import errno, os, socket, sys, threading
path, count = sys.argv[1], int(sys.argv[2])
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen(0)
def connect():
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        result = 'connected'
    except OSError as error:
        result = errno.errorcode[error.errno]
    os.write(1, (result + '\n').encode())
for _ in range(count):
    threading.Thread(target=connect, daemon=True).start()
sys.stdin.read()
os._exit(0)
";

/// Starts a process with this number of connections.
async fn connecting(client: &Client, dirs: &SandboxDirs, id: &str, count: usize) {
    let script = format!("exec python3 connect.py socket-{id} {count}");
    client.start(dirs.script(id, &script).stdin()).await;
}

#[tokio::test]
async fn waiting_connections_are_limited_in_all() {
    let (_server, client) = ready().await;
    let dirs = SandboxDirs::new();
    std::fs::write(dirs.workspace().join("connect.py"), CONNECT).expect("a file");
    connecting(&client, &dirs, "first", 1).await;
    let first = client.wait_output("first", "\n").await;
    if first.text() != "connected\n" {
        return; // This kernel has no unix sockets for sandboxed processes.
    }
    // In each one, a connection is in the queue and 16 wait, of which one doesn't count: 270 in all.
    let ids: Vec<_> = (0..18).map(|number| format!("p{number}")).collect();
    for id in &ids {
        connecting(&client, &dirs, id, 17).await;
    }
    deadline::poll_until("a refused connection", || {
        let texts = ids.iter().map(|id| client.event_log(id).text());
        let refused: usize = texts.map(|text| text.matches("EAGAIN").count()).sum();
        // 14 if all others still wait.
        (refused >= 14).then_some(())
    })
    .await;
    connecting(&client, &dirs, "last", 1).await;
    assert_eq!(client.wait_output("last", "\n").await.text(), "connected\n");
}
