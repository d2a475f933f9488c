//! A server is left, with the session that was opened on it.

use std::time::Duration;

use outpost_client::{Place as _, Remote, Standing};
use tokio::time::timeout;

use crate::render::out::note;

/// How long a lost connection may take to come back once a command is over. If it
/// doesn't, what the command has left running ends with its session.
const BACK_WITHIN: Duration = Duration::from_secs(2);
/// How long a person may wonder what is waited for.
const TOLD_AFTER: Duration = Duration::from_secs(1);
/// How long a server may take to end a session: it asks for 2 s, and then kills.
const ENDED_WITHIN: Duration = Duration::from_secs(5);

/// What may still run in the session when we go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remains {
    /// Nothing was ever started.
    Nothing,
    /// What a command has left behind that is over.
    Leftovers,
    /// Perhaps a command of whose start nobody has heard.
    Unknown,
}

/// Leaves a server in good order: the session ends with everything that runs in it,
/// where the server can be told so. Otherwise it stays for as long as sessions do
/// there. A launched server ends too, and is waited for.
pub(crate) async fn take_leave(remote: &Remote, remains: Remains) {
    if is_reached(remote, remains).await && remote.capabilities().process_list {
        let _ = timeout(ENDED_WITHIN, remote.close_session()).await;
    }
    let _ = remote.close().await;
}

/// Waits for a connection that is lost, as long as it is worth it.
async fn is_reached(remote: &Remote, remains: Remains) -> bool {
    match remains {
        Remains::Nothing => *remote.standing().borrow() == Standing::Connected,
        Remains::Leftovers => {
            let reached = timeout(BACK_WITHIN, remote.reached()).await;
            reached.is_ok_and(|reached| reached.is_ok())
        }
        // The place gives up by itself. Until then it is the only one that can end
        // what may have been started.
        Remains::Unknown => {
            if let Ok(reached) = timeout(TOLD_AFTER, remote.reached()).await {
                return reached.is_ok();
            }
            note("waiting for the connection, to end what may have been started");
            remote.reached().await.is_ok()
        }
    }
}
