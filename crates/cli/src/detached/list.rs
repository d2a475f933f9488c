//! Lists sessions and processes of a server.

use anyhow::Context;
use outpost_client::{ProcessEntry, RemoteExecutor, SessionEntry};

use super::session_label::is_detached_work;

/// Lists every session. A session without a process may still have leftover processes.
pub(crate) async fn list(remote: &RemoteExecutor) -> anyhow::Result<Vec<SessionEntry>> {
    if !remote.capabilities().session_list {
        anyhow::bail!(
            "cannot list the server's processes: it lists them only to its owner, over a unix socket; \
             use --on unix:///PATH"
        );
    }
    let sessions = remote.sessions().await;
    sessions.context("cannot list the server's processes")
}

/// The processes of detached work, oldest first; with `all`, those of other clients too.
pub(crate) fn processes(
    sessions: &[SessionEntry],
    all: bool,
) -> Vec<(&SessionEntry, &ProcessEntry)> {
    let matching = sessions.iter().filter(|s| all || is_detached_work(s));
    let mut processes: Vec<_> = matching
        .flat_map(|session| {
            session
                .processes
                .iter()
                .map(move |process| (session, process))
        })
        .collect();
    processes.sort_by_key(|(_, process)| process.started_at_ms);
    processes
}
