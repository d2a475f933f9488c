//! Disconnects from a server and closes the session.

use std::time::Duration;

use outpost_client::{ConnectionState, Executor as _, RemoteExecutor};
use tokio::time::timeout;

use crate::render::out::note;

/// Timeout for a lost connection to return after the command has exited. After that, leftover
/// processes end with the session's lease.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Delay before the user is told about the wait.
const NOTICE_DELAY: Duration = Duration::from_secs(1);
/// Timeout for a server to end a session: it terminates, waits 2 s, then kills.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Processes that may still run in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftovers {
    /// No process was started.
    None,
    /// The command has exited; it may have left processes.
    Processes,
    /// The result of the start is unknown.
    UnknownStart,
}

/// Disconnects from a server. The session is closed, with everything that runs in it, if the server
/// can be reached; otherwise it ends with its lease. A launched server is ended too, and waited
/// for.
pub(crate) async fn disconnect(remote: &RemoteExecutor, leftovers: Leftovers) {
    if is_connected(remote, leftovers).await && remote.capabilities().process_list {
        let _ = timeout(CLOSE_TIMEOUT, remote.close_session()).await;
    }
    let _ = remote.close().await;
}

/// Waits for a lost connection, depending on the leftovers.
async fn is_connected(remote: &RemoteExecutor, leftovers: Leftovers) -> bool {
    match leftovers {
        Leftovers::None => *remote.connection_state().borrow() == ConnectionState::Connected,
        Leftovers::Processes => {
            let connected = timeout(RECONNECT_TIMEOUT, remote.wait_connected()).await;
            connected.is_ok_and(|connected| connected.is_ok())
        }
        // The executor gives up by itself. Until then, only this connection can end the process.
        Leftovers::UnknownStart => {
            if let Ok(connected) = timeout(NOTICE_DELAY, remote.wait_connected()).await {
                return connected.is_ok();
            }
            note("waiting for the connection, to end a process that may have been started");
            remote.wait_connected().await.is_ok()
        }
    }
}
